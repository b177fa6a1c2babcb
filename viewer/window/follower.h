// SPDX-License-Identifier: Apache-2.0
// Follows a run that is still being recorded: loads it again when its files have grown, beside the UI thread.
#pragma once

#include <QObject>
#include <QTimer>
#include <memory>

#include "viewer/session/loader.h"
#include "viewer/session/view_state.h"

namespace paceline::viewer {

class Follower : public QObject {
  Q_OBJECT

 public:
  // Looks every `interval_ms`, and at most half of the time is spent on loading.
  Follower(QString path, int interval_ms, QObject* parent);

 Q_SIGNALS:
  void grown(std::shared_ptr<const paceline::viewer::Run> run);

 private:
  void look();

  QString path_;
  int interval_ms_;
  qint64 seen_ = 0;  // size and age of the files
  QTimer timer_;
  std::unique_ptr<Loader> loader_;
};

// Changes with every byte that is written to the run's files.
qint64 state_of_files(const QString& path);

// Brings what the user chose on the old page to the new one. A view that reached the end of the run stays at its end.
void carry_over(const ViewState& from, ViewState& to);

}  // namespace paceline::viewer
