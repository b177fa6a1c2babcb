// The first row of each rank: the strip of its phases, beside the rank's name and host.
#include <QFontMetrics>

#include "viewer/drawing/phase_strip.h"
#include "viewer/drawing/time_text.h"
#include "viewer/timeline/rows/rows.h"

namespace paceline::viewer {
namespace {

class RankRow : public Row {
 public:
  RankRow(Document& document, std::size_t rank) : Row(document, rank, Hidden::never) {}

  Height height() const override { return {1, 6}; }

  void paint(RowCanvas& canvas) override {
    canvas.painter.setFont(canvas.small);
    const QRect strip(0, canvas.y, canvas.axis.width(), canvas.height);
    canvas.counts += paint_phases(canvas.painter, index(), canvas.axis, strip, canvas.theme, true);
  }

  void paint_header(RowCanvas& canvas, const ViewState& state) override {
    canvas.arrow(9, canvas.y + canvas.height / 2, state.collapsed(rank()));
    const QString name = QString("Rank %1").arg(model().rank);
    const QRect line(header_left, canvas.y, header_width - header_left - header_margin, canvas.height);
    canvas.painter.setFont(canvas.bold);
    canvas.painter.setPen(QColor(canvas.theme.header_text));
    canvas.painter.drawText(line, Qt::AlignVCenter | Qt::AlignLeft, name);
    const QRect rest = line.adjusted(QFontMetrics(canvas.bold).horizontalAdvance(name) + 10, 0, 0, 0);
    canvas.painter.setFont(canvas.small);
    canvas.painter.setPen(QColor(canvas.theme.faint_text));
    const QString host = QString::fromStdString(model().host);
    canvas.painter.drawText(rest, Qt::AlignVCenter | Qt::AlignRight,
                            QFontMetrics(canvas.small).elidedText(host, Qt::ElideRight, rest.width()));
  }

  void header_clicked(ViewState& state) const override { state.set_collapsed(rank(), !state.collapsed(rank())); }

  QString tooltip(const RowPoint& point) override {
    const auto time = static_cast<std::int64_t>(point.time_ns);
    for (const analysis::Gap& gap : model().gaps) {
      if (time < gap.start_ns || time >= gap.end_ns) continue;
      return viewer::tooltip(QString::fromStdString(gap.reason),
                             tooltip_line("duration", duration_text(gap.end_ns - gap.start_ns)));
    }
    const auto interval = interval_at(point.time_ns);
    if (!interval) return {};
    return viewer::tooltip(phase_text(interval->phase),
                           tooltip_line("duration", duration_text(interval->end_ns - interval->start_ns)));
  }

  std::optional<TimeRange> range_at(double time_ns) const override {
    const auto interval = interval_at(time_ns);
    if (!interval) return std::nullopt;
    const auto begin = static_cast<double>(interval->start_ns), end = static_cast<double>(interval->end_ns);
    return TimeRange{begin - (end - begin) / 4, end + (end - begin) / 4};
  }

 private:
  std::optional<analysis::PhaseInterval> interval_at(double time_ns) const {
    return index().phases->at(static_cast<std::int64_t>(time_ns));
  }
};

}  // namespace

void add_rank_row(Document& document, std::size_t rank, Rows& rows) {
  rows.push_back(std::make_unique<RankRow>(document, rank));
}

}  // namespace paceline::viewer
