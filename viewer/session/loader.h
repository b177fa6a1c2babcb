// SPDX-License-Identifier: Apache-2.0
// Opens a run in a thread of its own, so that the window stays responsive. Emits the progress, in all and of each rank,
// then the run or the reason why it cannot be opened.
#pragma once

#include <QThread>
#include <atomic>
#include <memory>

#include "viewer/session/run_source.h"

namespace paceline::viewer {

class Loader : public QThread {
  Q_OBJECT

 public:
  explicit Loader(RunSource source, QObject* parent = nullptr) : QThread(parent), source_(std::move(source)) {}
  explicit Loader(const QString& path, QObject* parent = nullptr) : Loader(RunSource{.paths = {path}}, parent) {}
  ~Loader() override;

  void cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }

 Q_SIGNALS:
  void progressed(int percent);
  void rank_progressed(const QString& name, int percent);  // first with 0, in the order of the ranks
  void loaded(std::shared_ptr<const paceline::viewer::Run> run);
  void failed(const QString& why);

 protected:
  void run() override;

 private:
  RunSource source_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace paceline::viewer
