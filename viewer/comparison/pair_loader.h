// SPDX-License-Identifier: Apache-2.0
// Opens two runs beside the UI thread, one after the other, since each load uses all CPUs. A run that is in memory
// already is not loaded again.
#pragma once

#include <QObject>
#include <memory>

#include "viewer/session/loader.h"

namespace paceline::viewer {

struct RunToOpen {
  QString path;
  std::shared_ptr<const Run> run = nullptr;  // if it is in memory
};

class PairLoader : public QObject {
  Q_OBJECT

 public:
  PairLoader(RunToOpen a, RunToOpen b, QObject* parent);

  void start();
  void cancel();

 Q_SIGNALS:
  void progressed(int percent);  // of both
  void rank_progressed(const QString& name, int percent);
  void loaded(std::shared_ptr<const paceline::viewer::Run> a, std::shared_ptr<const paceline::viewer::Run> b);
  void failed(const QString& why);

 private:
  void load_next();

  struct Side {
    RunToOpen wanted;
    QString letter;
  } sides_[2];
  std::unique_ptr<Loader> loader_;
};

}  // namespace paceline::viewer
