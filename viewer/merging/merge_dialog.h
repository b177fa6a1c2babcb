// SPDX-License-Identifier: Apache-2.0
// Lists several files and directories before they are opened as one run: the rank and the time of each file, how its
// clock is aligned and how exactly, what is missing in it, and why it is left out. A worker thread loads the run, and
// the list reports what the loader did. The loaded run is opened if the user agrees.
#pragma once

#include <QComboBox>
#include <QDialog>
#include <QLabel>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QStringList>
#include <QTableWidget>
#include <memory>
#include <vector>

#include "analysis/load/merge.h"
#include "viewer/session/background.h"
#include "viewer/session/run_source.h"

namespace paceline::viewer {

// What the worker made: the run and the report on each file.
struct MergePreview {
  std::vector<analysis::MergedFile> files;
  std::shared_ptr<const Run> run;
};

class MergeDialog : public QDialog {
  Q_OBJECT

 public:
  enum Column { file, format, rank, host, span, clock, error, offset, taken, columns };
  // What the user chose to do with the files.
  enum class Outcome { none, one_run, separate_runs, comparison };

  explicit MergeDialog(QStringList paths, analysis::MergeChoices choices = {}, QWidget* parent = nullptr);
  ~MergeDialog() override;

  Outcome outcome() const { return outcome_; }
  const QStringList& paths() const { return paths_; }
  // The merged run, to be opened again without the dialog.
  RunSource source() const { return {.paths = paths_, .choices = choices_, .merged = true}; }
  // The merged run; nullptr while it is loading and where it could not be loaded.
  const std::shared_ptr<const Run>& run() const { return preview_.run; }
  QString summary() const { return summary_->text(); }
  // Handles events until the files are read: for pictures and tests.
  void finish() { background_.finish(); }

 Q_SIGNALS:
  void progressed(int percent);

 private:
  QWidget* make_choices();
  QWidget* make_buttons();
  void add(const QStringList& paths);
  void load();
  void show_preview(MergePreview preview);
  void show_failure(const QString& why);
  void show_state();  // enables what is possible
  void add_row(const analysis::MergedFile& of, const QString& folder);
  void change(QTableWidgetItem* item);
  void end(Outcome outcome);

  QStringList paths_;
  analysis::MergeChoices choices_;
  MergePreview preview_;
  Outcome outcome_ = Outcome::none;
  bool filling_ = false;  // the table, which is no change by the user

  QLabel* summary_ = nullptr;
  QProgressBar* bar_ = nullptr;
  QTableWidget* table_ = nullptr;
  QPlainTextEdit* notes_ = nullptr;
  QPushButton *open_ = nullptr, *separate_ = nullptr, *compare_ = nullptr;
  Background background_;
  Task loading_{background_};
};

}  // namespace paceline::viewer
