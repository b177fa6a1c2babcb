// SPDX-License-Identifier: Apache-2.0
// SQL over the run, as `paceline query` has it: an editor above the table of the result. A click on a row with the
// number of a slice, or with a rank and a time, goes there.
#pragma once

#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTableView>
#include <memory>

#include "viewer/panels/table_panel.h"

namespace paceline::viewer {

// The result of a statement, or why there is none.
struct QueryResult {
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;
  bool more = false;  // than most_table_rows, which are kept
  QString error;
};

// A statement that may be ended from another thread.
class RunningQuery {
 public:
  RunningQuery();
  ~RunningQuery();
  // Runs the statement, to be called once and in a worker thread.
  QueryResult run(const Run& run, const QString& sql);
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class SqlConsole : public QWidget {
  Q_OBJECT

 public:
  SqlConsole(Document& document, Selection& selection);
  ~SqlConsole() override;

  QPlainTextEdit& editor() { return *editor_; }
  QTableView& view() { return *view_; }
  QString status() const { return status_->text(); }
  void run();  // the text of the editor
  void stop();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void show(QueryResult result);

  Document& document_;
  Selection& selection_;
  Task task_;
  std::shared_ptr<RunningQuery> running_;
  QPlainTextEdit* editor_;
  QPushButton* button_;
  QLabel* status_;
  QTableView* view_;
  std::unique_ptr<TableModel> model_;
};

}  // namespace paceline::viewer
