// SPDX-License-Identifier: Apache-2.0
#include "viewer/window/exports.h"

#include <QAbstractItemModel>
#include <QDir>
#include <QFile>
#include <QPainter>
#include <QPixmap>
#include <QSaveFile>
#include <QSvgGenerator>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "analysis/exporters/exporter.h"
#include "profiler/format/error.h"
#include "viewer/panels/columns.h"

namespace paceline::viewer {
namespace exports {

QString csv_field(const QString& text) {
  if (!text.contains(',') && !text.contains('"') && !text.contains('\n')) return text;
  return '"' + QString(text).replace("\"", "\"\"") + '"';
}

// With the unit of the numbers below: "Wall time (ns)".
QString title_of(const QAbstractItemModel& model, int column) {
  const QString title = model.headerData(column, Qt::Horizontal).toString();
  QString unit;
  for (int row = 0; row < model.rowCount() && unit.isEmpty(); ++row) {
    unit = model.index(row, column).data(unit_role).toString();
  }
  return unit.isEmpty() ? title : QString("%1 (%2)").arg(title, unit);
}

// A number as a program reads it, where the cell has one.
QString value_of(const QModelIndex& cell) {
  const QVariant value = cell.data(value_role);
  return value.isValid() ? QString::number(value.toDouble(), 'g', 17) : cell.data().toString();
}

[[noreturn]] void cannot_write(const QString& file, const QString& why) {
  throw Error(QString("%1: cannot be written: %2").arg(file, why).toStdString());
}

void save_svg(QWidget& widget, const QString& file) {
  QSaveFile out(file);
  if (!out.open(QIODevice::WriteOnly)) cannot_write(file, out.errorString());
  QSvgGenerator svg;
  svg.setOutputDevice(&out);
  svg.setSize(widget.size());
  svg.setViewBox(widget.rect());
  svg.setResolution(widget.logicalDpiX());  // sizes of fonts in points mean the same as on screen
  svg.setTitle(widget.windowTitle());
  QPainter painter(&svg);
  widget.render(&painter);
  painter.end();
  if (!out.commit()) cannot_write(file, out.errorString());
}

QString filter_of(const analysis::Exporter& exporter) {
  const auto text = [](std::string_view of) { return QString::fromUtf8(of.data(), qsizetype(of.size())); };
  return QString("%1 (*)").arg(text(exporter.name));
}

QString shell_word(const QString& text) {
  const bool plain =
      std::ranges::all_of(text, [](QChar c) { return c.isLetterOrNumber() || QString("/._-+=:@%,").contains(c); });
  return plain && !text.isEmpty() ? text : "'" + QString(text).replace("'", "'\\''") + "'";
}

}  // namespace exports

void save_picture(QWidget& widget, const QString& file) {
  if (file.endsWith(".svg", Qt::CaseInsensitive)) return exports::save_svg(widget, file);
  if (!widget.grab().save(file)) {
    exports::cannot_write(file, "the directory must exist, and the name must end with .png or .svg");
  }
}

QTableView* table_in_front(QWidget& page) {
  for (QTableView* view : page.findChildren<QTableView*>()) {
    if (!view->viewport()->visibleRegion().isEmpty()) return view;
  }
  return nullptr;
}

QString table_csv(const QAbstractItemModel& model) {
  QString text;
  for (int row = -1; row < model.rowCount(); ++row) {
    QStringList fields;
    for (int column = 0; column < model.columnCount(); ++column) {
      fields << exports::csv_field(row < 0 ? exports::title_of(model, column)
                                           : exports::value_of(model.index(row, column)));
    }
    text += fields.join(',') + "\r\n";
  }
  return text;
}

void save_table(const QAbstractItemModel& model, const QString& file) {
  QSaveFile out(file);
  if (!out.open(QIODevice::WriteOnly) || out.write(table_csv(model).toUtf8()) < 0 || !out.commit()) {
    exports::cannot_write(file, out.errorString());
  }
}

QStringList trace_filters() {
  QStringList filters;
  for (const analysis::Exporter* exporter : analysis::exporters()) {
    if (exporter->target != analysis::Exporter::Target::folder) filters << exports::filter_of(*exporter);
  }
  return filters;
}

void save_trace(const Run& run, const Part& part, const QString& filter, const QString& file) {
  analysis::TimeWindow window;
  if (part.range) window = {std::int64_t(part.range->begin_ns), std::int64_t(std::ceil(part.range->end_ns))};
  std::vector<analysis::NumberRange> ranks;
  for (const std::size_t rank : part.ranks) {
    const std::int64_t number = run.trace.ranks[rank].rank;
    ranks.emplace_back(number, number);
  }
  const auto all = analysis::exporters();
  const auto found = std::ranges::find_if(
      all, [&](const analysis::Exporter* exporter) { return exports::filter_of(*exporter) == filter; });
  if (found == all.end()) exports::cannot_write(file, "no such format: " + filter);
  const analysis::ExportJob job(run.trace, analysis::Selection(window, std::move(ranks)));
  QFile::remove(file);
  if ((*found)->target == analysis::Exporter::Target::file) return (*found)->make(job, file.toStdString());
  std::FILE* out = std::fopen(QFile::encodeName(file).constData(), "wb");
  if (out == nullptr) exports::cannot_write(file, qt_error_string(errno));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> closing(out, &std::fclose);
  try {
    (*found)->write(job, out);
    if (std::fflush(out) != 0) exports::cannot_write(file, qt_error_string(errno));
  } catch (...) {
    QFile::remove(file);  // half a trace is of no use
    throw;
  }
}

QString view_command(const ViewState& state) {
  const TimeRange view = state.time.axis().visible();
  return QString("paceline view %1 --from %2ns --to %3ns")
      .arg(exports::shell_word(QDir::cleanPath(state.run.path)))
      .arg(std::llround(view.begin_ns))
      .arg(std::llround(view.end_ns));
}

}  // namespace paceline::viewer
