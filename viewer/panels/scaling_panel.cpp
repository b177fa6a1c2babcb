// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/scaling_panel.h"

#include <QDir>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QPainter>
#include <QPainterPath>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "analysis/report/build.h"
#include "analysis/report/section.h"
#include "analysis/run/read_run.h"
#include "analysis/scaling/laws.h"
#include "analysis/scaling/runs_table.h"
#include "viewer/drawing/labels.h"
#include "viewer/drawing/palette.h"
#include "viewer/text/cut_label.h"

namespace paceline::viewer {
namespace scaling_panel {

// What one path holds: an analysed run, rows of a table, or why it cannot be read.
struct Read {
  std::shared_ptr<const analysis::RunAnalysis> run;
  std::vector<analysis::ScalingRun> rows;
  QString failure;
};

Read read(const std::string& path, const Ticket& ticket) {
  Read result;
  try {
    if (analysis::looks_like_runs_table(path)) {
      result.rows = analysis::read_runs_table(path);
      return result;
    }
    bool failed = false;
    auto run = analysis::read_run(
        path, {},
        [&](const std::function<void(const analysis::Progress&)>& work) {
          work(analysis::Progress([&](double) { return !ticket.cancelled(); }));
        },
        failed);
    if (run) result.run = std::make_shared<const analysis::RunAnalysis>(std::move(run->run));
  } catch (const std::exception& error) {
    result.failure = QString::fromUtf8(error.what());
  }
  return result;
}

// The path itself, or the runs in a directory that has no files of its own.
QStringList runs_of(const QString& path) {
  const QDir directory(path);
  const QStringList folders = directory.entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name);
  if (!directory.exists() || folders.isEmpty() || !directory.entryList(QDir::Files).isEmpty()) return {path};
  QStringList runs;
  for (const QString& folder : folders) runs << directory.filePath(folder);
  return runs;
}

QString text_of(const std::string& text) { return QString::fromStdString(text).toHtmlEscaped(); }

QString html_of(const analysis::Table& table) {
  QString html = QString("<p><b>%1</b></p><table cellpadding='3'><tr>").arg(text_of(table.title));
  const auto cell = [&](const char* tag, const std::string& text, std::size_t column) {
    html += QString("<%1 align='%2'>%3</%1>").arg(tag, table.is_text(column) ? "left" : "right", text_of(text));
  };
  for (std::size_t column = 0; column < table.columns.size(); ++column) cell("th", table.columns[column], column);
  for (const auto& row : table.rows) {
    html += "</tr><tr>";
    for (std::size_t column = 0; column < row.size(); ++column) cell("td", row[column], column);
  }
  return html + QString("</tr></table><p>%1</p>").arg(text_of(table.note));
}

}  // namespace scaling_panel

SpeedUpChart::SpeedUpChart() {
  setMinimumSize(260, 150);
  setAccessibleName("Speed-up over the number of ranks");
}

void SpeedUpChart::set_report(std::shared_ptr<const analysis::Report> report) {
  report_ = std::move(report);
  most_ = 2;
  for (const analysis::ScalingPoint& point : report_->scaling.points) {
    if (point.speedup) most_ = std::max({most_, double(point.ranks), *point.speedup});
  }
  update();
}

QPointF SpeedUpChart::place_of(double ranks, double speed_up) const {
  constexpr double left = 40, right = 16, top = 26, bottom = 34;
  const double share_x = std::log2(ranks) / std::log2(most_);
  const double share_y = std::log2(std::max(speed_up, 0.5)) / std::log2(most_);
  return {left + share_x * (width() - left - right), height() - bottom - share_y * (height() - top - bottom)};
}

void SpeedUpChart::paintEvent(QPaintEvent*) {
  const Theme theme = Theme::of(palette());
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(rect(), QColor(theme.background));
  painter.setFont(with_size(font(), 11));
  painter.setPen(QColor(theme.faint_text));
  painter.drawText(QRectF(0, 4, width(), 16), Qt::AlignHCenter, "Speed-up over the number of ranks");
  if (report_ == nullptr) return;
  const auto line = [&](auto speed_up, QRgb colour, Qt::PenStyle style) {
    constexpr int steps = 48;
    QPainterPath path(place_of(1, speed_up(1.0)));
    for (int step = 1; step <= steps; ++step) {
      const double ranks = std::pow(most_, double(step) / steps);
      path.lineTo(place_of(ranks, speed_up(ranks)));
    }
    painter.setPen(QPen(QColor(colour), 1.5, style));
    painter.drawPath(path);
  };
  for (double ranks = 1; ranks <= most_; ranks *= 2) {
    const QString number = QString::number(ranks);
    const QPointF below = place_of(ranks, 1), beside = place_of(1, ranks);
    painter.setPen(QColor(theme.grid));
    painter.drawLine(below, place_of(ranks, most_));
    painter.drawLine(beside, place_of(most_, ranks));
    painter.setPen(QColor(theme.faint_text));
    painter.drawText(QRectF(below.x() - 30, below.y() + 3, 60, 14), Qt::AlignHCenter, number);
    painter.drawText(QRectF(beside.x() - 38, beside.y() - 8, 32, 16), Qt::AlignRight | Qt::AlignVCenter, number);
  }
  line([](double ranks) { return ranks; }, theme.faint_text, Qt::DashLine);
  const auto& fits = report_->scaling.fits;
  if (!fits.empty() && !fits.front().misfit) {
    const double serial = fits.front().serial_fraction;
    line([serial](double ranks) { return analysis::amdahl_speedup(serial, ranks); }, theme.selection, Qt::SolidLine);
  }
  const QColor colour(phase_colour(analysis::Phase::communication, theme));
  for (const analysis::ScalingPoint& point : report_->scaling.points) {
    if (!point.speedup) continue;
    painter.setPen(QPen(colour, 1.5));
    if (point.speedup_ci95) {
      painter.drawLine(place_of(point.ranks, point.speedup_ci95->low), place_of(point.ranks, point.speedup_ci95->high));
    }
    painter.setBrush(colour);
    painter.drawEllipse(place_of(point.ranks, *point.speedup), 4, 4);
  }
}

ScalingPanel::ScalingPanel(Document& document, Selection& selection)
    : LazyPanel(document, selection),
      add_(new QPushButton("Add runs…")),
      table_(new QPushButton("Add a table of runs…")),
      clear_(new QPushButton("Clear")),
      note_(new CutLabel),
      text_(new QTextBrowser),
      chart_(new SpeedUpChart) {
  add_->setToolTip("The directory of a run of the same work on another number of ranks, or a directory of such runs");
  table_->setToolTip("A CSV file with the columns ranks, epochs, images and seconds");
  text_->setFrameShape(QFrame::NoFrame);
  text_->setAccessibleName("Scaling");
  auto* bar = new QHBoxLayout;
  bar->setContentsMargins(8, 4, 8, 4);
  for (QPushButton* button : {add_, table_, clear_}) bar->addWidget(button);
  bar->addWidget(note_, 1);
  auto* result = new QHBoxLayout;
  result->addWidget(text_, 2);
  result->addWidget(chart_, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addLayout(bar);
  layout->addLayout(result, 1);
  connect(add_, &QPushButton::clicked, this, [this] { choose(false); });
  connect(table_, &QPushButton::clicked, this, [this] { choose(true); });
  connect(clear_, &QPushButton::clicked, this, &ScalingPanel::clear);
  connect(&document, &Document::reported, this, [this] { set_stale(); });
}

void ScalingPanel::refresh() {
  document_.want_report();
  fill();
  if (!waiting_.isEmpty()) return read_next();
  if (!runs_.empty() || !rows_.empty()) build();
}

void ScalingPanel::choose(bool table) {
  const QString path = table ? QFileDialog::getOpenFileName(this, "Add a table of runs", {}, "Tables (*.csv);;All (*)")
                             : QFileDialog::getExistingDirectory(this, "Add the directory of a run, or of several");
  if (!path.isEmpty()) add(path);
}

void ScalingPanel::add(const QString& path) {
  for (const QString& run : scaling_panel::runs_of(path)) {
    const QString canonical = QFileInfo(run).canonicalFilePath(), known = canonical.isEmpty() ? run : canonical;
    // The run of the page is part of the report anyway.
    if (known_.contains(known) || known == QFileInfo(document_.run().path).canonicalFilePath()) continue;
    known_ << known;
    waiting_ << run;
  }
  set_stale();
}

void ScalingPanel::clear() {
  task_.cancel();
  waiting_.clear(), failures_.clear(), known_.clear();
  runs_.clear(), rows_.clear();
  report_ = nullptr;
  set_stale();
}

void ScalingPanel::read_next() {
  if (task_.busy()) return;
  task_.start(
      [path = waiting_.front().toStdString()](const Ticket& ticket) { return scaling_panel::read(path, ticket); },
      [this](scaling_panel::Read read) {
        waiting_.pop_front();
        if (read.run) runs_.push_back(std::move(read.run));
        for (auto& row : read.rows) rows_.push_back(std::move(row));
        if (!read.failure.isEmpty()) failures_ << read.failure;
        refresh();
      });
}

void ScalingPanel::build() {
  if (document_.report() == nullptr) return;  // comes again when it is there
  task_.start(
      [own = document_.report(), others = runs_, rows = rows_](const Ticket&) {
        std::vector<analysis::RunAnalysis> runs{own->runs.front()};
        for (const auto& run : others) runs.push_back(*run);
        return std::make_shared<const analysis::Report>(analysis::build_report(std::move(runs), rows));
      },
      [this](std::shared_ptr<const analysis::Report> report) {
        report_ = std::move(report);
        fill();
        if (!waiting_.isEmpty()) refresh();  // added meanwhile
      });
}

void ScalingPanel::fill() {
  clear_->setEnabled(!known_.isEmpty());
  note_->setText(waiting_.isEmpty() ? plural_text(1 + runs_.size() + rows_.size(), "run", "runs")
                                    : "reading " + waiting_.front() + "…");
  chart_->setVisible(report_ != nullptr);
  QString html;
  for (const QString& failure : failures_) html += "<p>" + failure.toHtmlEscaped() + "</p>";
  if (report_ == nullptr) {
    html +=
        "<p>Add runs of the same work on other numbers of ranks. The panel then shows the speed-up, the efficiency "
        "and the law that they follow, as <code>paceline report RUN…</code> does.</p>";
  } else {
    chart_->set_report(report_);
    html += "<p><b>" + scaling_panel::text_of(report_->headline) + "</b></p>";
    for (const analysis::Table& table : analysis::scaling_tables(*report_)) html += scaling_panel::html_of(table);
    for (const analysis::Finding& finding : report_->findings) {
      if (!finding.run) html += "<p>" + scaling_panel::text_of(finding.text) + "</p>";
    }
  }
  text_->setHtml(html);
}

}  // namespace paceline::viewer
