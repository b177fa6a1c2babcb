// SPDX-License-Identifier: Apache-2.0
// What is shown while a run is being loaded: the progress in all and of each rank. The slices of a rank cannot be shown
// before all ranks are there: their names get their numbers when the ranks are merged.
#pragma once

#include <QHash>
#include <QLabel>
#include <QListWidget>
#include <QProgressBar>
#include <QWidget>

namespace paceline::viewer {

class LoadingPage : public QWidget {
  Q_OBJECT

 public:
  explicit LoadingPage(const QString& path);

  void show_progress(int percent);
  // A new name gets a row.
  void show_rank(const QString& name, int percent);

 Q_SIGNALS:
  void cancelled();

 private:
  QProgressBar* bar_;
  QListWidget* ranks_;
  QHash<QString, QListWidgetItem*> rows_;  // by name
};

}  // namespace paceline::viewer
