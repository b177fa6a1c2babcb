// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/sql_console.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QVBoxLayout>
#include <algorithm>
#include <mutex>

#include "analysis/query/query.h"
#include "analysis/trace/slice_id.h"
#include "viewer/panels/columns.h"
#include "viewer/text/cut_label.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace sql_console {

using analysis::QueryValue;

constexpr const char* example =
    "SELECT id, rank, name, duration_text(duration_ns) AS duration\n"
    "FROM slices ORDER BY duration_ns DESC LIMIT 100";

TableCell cell_of(const QueryValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return {QString::number(*whole), double(*whole)};
  if (const auto* number = std::get_if<double>(&value)) return {QString::number(*number), *number};
  if (const auto* text = std::get_if<std::string_view>(&value)) return {shown_name(std::string(*text), 1000)};
  if (const auto* bytes = std::get_if<analysis::QueryBytes>(&value)) {
    return {count_text(bytes->bytes.size()) + " bytes"};
  }
  return {"NULL"};
}

// Finds out where rows lead to, by the names of their columns.
class Places {
 public:
  Places(const Run& run, const std::vector<std::string>& columns) : run_(run) {
    const auto find = [&](std::initializer_list<const char*> names) {
      for (const char* name : names) {
        if (const auto found = std::ranges::find(columns, name); found != columns.end()) {
          return int(found - columns.begin());
        }
      }
      return -1;
    };
    id_ = find({"id", "slice", "send_slice", "receive_slice"});
    rank_ = find({"rank", "sender", "last_rank"});
    begin_ = find({"start_ns", "time_ns", "send_start_ns"});
    end_ = find({"end_ns", "receive_end_ns"});
  }

  Place of(std::span<const QueryValue> values) const {
    Place place;
    if (const auto id = whole(values, id_)) place.slice = slice_of(*id);
    if (const auto number = whole(values, rank_)) {
      const auto& ranks = run_.trace.ranks;
      const auto found = std::ranges::find(ranks, *number, &analysis::Rank::rank);
      if (found != ranks.end()) place.rank = std::size_t(found - ranks.begin());
    }
    if (const auto begin = whole(values, begin_); begin && !place.slice) {
      const double first = double(*begin), last = double(whole(values, end_).value_or(*begin));
      const double margin = std::max((last - first) / 2, 1e5);
      place.range = TimeRange{first - margin, last + margin};
    }
    return place;
  }

 private:
  static std::optional<std::int64_t> whole(std::span<const QueryValue> values, int column) {
    const auto* value = column < 0 ? nullptr : std::get_if<std::int64_t>(&values[std::size_t(column)]);
    return value == nullptr ? std::nullopt : std::optional(*value);
  }
  std::optional<SliceRef> slice_of(std::int64_t id) const {
    const analysis::EventPlace place = analysis::place_of(id);
    std::size_t track = place.track;
    for (std::size_t rank = 0; rank < run_.trace.ranks.size(); ++rank) {
      const auto& tracks = run_.trace.ranks[rank].tracks;
      if (track >= tracks.size()) {
        track -= tracks.size();
        continue;
      }
      const SliceRef ref{.rank = rank, .track = track, .slice = place.position, .mark = place.is_mark};
      return place.position < slices_of(run_, ref).size() ? std::optional(ref) : std::nullopt;
    }
    return std::nullopt;
  }

  const Run& run_;
  int id_ = -1, rank_ = -1, begin_ = -1, end_ = -1;
};

class Sink : public analysis::QuerySink {
 public:
  Sink(const Run& run, analysis::QueryRunner& runner, QueryResult& result)
      : run_(run), runner_(runner), result_(result) {}

  void begin(std::vector<std::string> columns) override {
    for (const std::string& name : columns) result_.columns.push_back({QString::fromStdString(name), {}, false});
    places_.emplace(run_, columns);
  }
  void row(std::span<const QueryValue> values) override {
    if (result_.rows.size() == most_table_rows) {
      result_.more = true;
      return runner_.interrupt();
    }
    TableRow& row = result_.rows.emplace_back();
    for (const QueryValue& value : values) row.cells.push_back(cell_of(value));
    row.place = places_->of(values);
  }
  void end() override {}

 private:
  const Run& run_;
  analysis::QueryRunner& runner_;
  QueryResult& result_;
  std::optional<Places> places_;
};

// A column is one of numbers if all of its values are.
void find_numbers(QueryResult& result) {
  for (std::size_t column = 0; column < result.columns.size(); ++column) {
    result.columns[column].number = !result.rows.empty() && std::ranges::all_of(result.rows, [&](const TableRow& row) {
      return row.cells[column].number.has_value() || row.cells[column].text == "NULL";
    });
  }
}

}  // namespace sql_console

struct RunningQuery::State {
  std::mutex mutex;
  analysis::QueryRunner* runner = nullptr;  // while the statement runs
  bool stopped = false;
};

RunningQuery::RunningQuery() : state_(std::make_unique<State>()) {}
RunningQuery::~RunningQuery() = default;

QueryResult RunningQuery::run(const Run& run, const QString& sql) {
  QueryResult result;
  analysis::QueryRunner runner(*run.index);
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->stopped) {
      result.error = "stopped";
      return result;
    }
    state_->runner = &runner;
  }
  sql_console::Sink sink(run, runner, result);
  try {
    runner.run(sql.toStdString(), sink);
  } catch (const std::exception& error) {
    if (!result.more) result.error = runner.was_interrupted() ? QString("stopped") : QString::fromUtf8(error.what());
  }
  const std::lock_guard lock(state_->mutex);
  state_->runner = nullptr;
  sql_console::find_numbers(result);
  return result;
}

void RunningQuery::stop() {
  const std::lock_guard lock(state_->mutex);
  state_->stopped = true;
  if (state_->runner != nullptr) state_->runner->interrupt();
}

SqlConsole::SqlConsole(Document& document, Selection& selection)
    : document_(document), selection_(selection), task_(document.background()) {
  editor_ = new QPlainTextEdit(sql_console::example);
  editor_->setAccessibleName("SQL");
  editor_->setTabChangesFocus(true);
  editor_->setFrameShape(QFrame::NoFrame);
  editor_->setFixedHeight(64);
  editor_->setToolTip(
      "One SELECT statement. The tables are slices, marks, arguments, kinds, ranks, tracks, phases,\n"
      "iterations, collectives, messages and counters; paceline query --schema lists their columns.");
  QFont fixed("monospace");
  fixed.setStyleHint(QFont::Monospace);
  fixed.setPixelSize(12);
  editor_->setFont(fixed);
  editor_->installEventFilter(this);
  button_ = new QPushButton("Run");
  button_->setToolTip("Ctrl+Enter");
  connect(button_, &QPushButton::clicked, this, [this] { running_ ? stop() : run(); });
  status_ = new CutLabel("Ctrl+Enter runs the statement.");
  status_->setTextFormat(Qt::PlainText);
  view_ = new QTableView;
  view_->setAccessibleName("Result of the SQL statement");
  view_->setFrameShape(QFrame::NoFrame);
  view_->setShowGrid(false);
  view_->setWordWrap(false);
  view_->setAlternatingRowColors(true);
  view_->setTabKeyNavigation(false);
  view_->setSelectionBehavior(QAbstractItemView::SelectRows);
  view_->verticalHeader()->hide();
  view_->verticalHeader()->setDefaultSectionSize(22);
  view_->horizontalHeader()->setResizeContentsPrecision(64);  // rows that are measured
  const auto go_to = [this](const QModelIndex& index) {
    if (const Place& place = model_->place(index.row()); place.anywhere()) selection_.go_to(place);
  };
  connect(view_, &QTableView::clicked, this, go_to);
  connect(view_, &QTableView::activated, this, go_to);
  auto* line = new QHBoxLayout;
  line->setContentsMargins(8, 2, 8, 2);
  line->addWidget(button_);
  line->addWidget(status_, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(editor_);
  layout->addLayout(line);
  layout->addWidget(view_, 1);
  setFocusProxy(editor_);
}

SqlConsole::~SqlConsole() { stop(); }

void SqlConsole::run() {
  stop();
  running_ = std::make_shared<RunningQuery>();
  status_->setText("running…");
  button_->setText("Stop");
  task_.start([run = document_.shared_run(), running = running_,
               sql = editor_->toPlainText()](const Ticket&) { return running->run(*run, sql); },
              [this](QueryResult result) { show(std::move(result)); });
}

void SqlConsole::stop() {
  if (running_) running_->stop();
}

void SqlConsole::show(QueryResult result) {
  running_.reset();
  button_->setText("Run");
  if (!result.error.isEmpty()) return status_->setText(result.error);
  status_->setText(result.more ? QString("the first %1 rows").arg(count_text(result.rows.size()))
                               : plural_text(result.rows.size(), "row", "rows"));
  if (result.columns.empty()) return;
  auto model = std::make_unique<TableModel>(std::move(result.columns), -1);
  model->show(std::move(result.rows));
  view_->setSortingEnabled(false);  // the order of the statement stays until a header is clicked
  view_->setModel(model.get());
  model_ = std::move(model);
  view_->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  view_->setSortingEnabled(true);
  view_->resizeColumnsToContents();
  widen_columns(*view_, view_->width());
}

bool SqlConsole::eventFilter(QObject* watched, QEvent* event) {
  if (watched == editor_ && event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    const bool enter = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
    if (enter && key->modifiers() & Qt::ControlModifier) {
      run();
      return true;
    }
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace paceline::viewer
