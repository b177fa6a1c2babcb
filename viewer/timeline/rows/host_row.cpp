// SPDX-License-Identifier: Apache-2.0
// The heading of the ranks of one host. While they are folded, it shows the shares of their phases.
#include "viewer/drawing/phase_strip.h"
#include "viewer/timeline/rows/rows.h"

namespace paceline::viewer {
namespace {

class HostRow : public Row {
 public:
  HostRow(Document& document, const RankGroup& group)
      : Row(document, group.ranks.front(), Hidden::never), group_(group) {}

  Height height() const override { return {.levels = 0, .pixels = 18}; }

  void paint(RowCanvas& canvas) override {
    const int width = canvas.axis.width();
    canvas.painter.fillRect(0, canvas.y, width, canvas.height, QColor(canvas.theme.header));
    if (!group_.folded) return;
    // A fixed amount of work, however many ranks there are.
    constexpr std::size_t most_lookups = 20'000;
    const int bin = static_cast<int>(std::max<std::size_t>(4, group_.ranks.size() * std::size_t(width) / most_lookups));
    std::span<const WaitTimeline> waits;
    if (document_.insight() != nullptr) waits = document_.insight()->waits;
    canvas.painter.drawImage(QPoint(0, canvas.y),
                             phase_shares(run(), group_.ranks, waits, canvas.axis, canvas.height, canvas.theme, bin));
    ++canvas.counts.rectangles;
  }

  void paint_header(RowCanvas& canvas, const Arrangement&) override {
    canvas.arrow(9, canvas.y + canvas.height / 2, group_.folded);
    canvas.painter.setFont(with_size(canvas.small, 11, true));
    canvas.painter.setPen(QColor(canvas.theme.header_text));
    const QRect box = canvas.name_box();
    const QString count = plural_text(group_.ranks.size(), "rank", "ranks");
    const QFontMetrics metrics(canvas.painter.font());
    const int room = box.width() - metrics.horizontalAdvance(count) - 8;
    canvas.painter.drawText(box, Qt::AlignVCenter | Qt::AlignLeft,
                            metrics.elidedText(group_.host, Qt::ElideMiddle, room));
    canvas.painter.setFont(canvas.small);
    canvas.painter.setPen(QColor(canvas.theme.faint_text));
    canvas.painter.drawText(box, Qt::AlignVCenter | Qt::AlignRight, count);
  }

  void header_clicked(Arrangement& arrangement) const override {
    const QString host = group_.host;  // the rows are placed again, and this one ends
    arrangement.set_host_folded(host, !group_.folded);
  }
  QString header_tooltip(const Arrangement&) const override { return viewer::tooltip(group_.host, {}); }

 private:
  RankGroup group_;
};

}  // namespace

std::unique_ptr<Row> make_host_row(Document& document, const RankGroup& group) {
  return std::make_unique<HostRow>(document, group);
}

}  // namespace paceline::viewer
