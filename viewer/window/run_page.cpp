#include "viewer/window/run_page.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "viewer/drawing/time_text.h"
#include "viewer/panels/legend.h"
#include "viewer/panels/overview_widget.h"

namespace paceline::viewer {

RunPage::RunPage(std::shared_ptr<const Run> run, QWidget* parent) : QWidget(parent), run_(std::move(run)) {
  timeline_ = new TimelineWidget(run_);
  breakdown_ = new BreakdownPanel(run_);
  details_ = new DetailsPanel(run_);
  search_ = new SearchBar(run_);

  auto* title = new QLabel(heading());
  auto* bar = new QHBoxLayout;
  bar->setContentsMargins(12, 5, 8, 5);
  bar->addWidget(title, 1);
  bar->addWidget(search_);

  auto* top = new QWidget;
  auto* top_layout = new QVBoxLayout(top);
  top_layout->setContentsMargins(0, 0, 0, 0);
  top_layout->setSpacing(0);
  top_layout->addWidget(new OverviewWidget(timeline_));
  top_layout->addWidget(timeline_, 1);
  top_layout->addWidget(new Legend(*run_));

  auto* bottom = new QSplitter(Qt::Horizontal);
  bottom->addWidget(breakdown_);
  bottom->addWidget(details_);
  bottom->setStretchFactor(0, 1);
  bottom->setSizes({1030, 570});
  bottom->setHandleWidth(1);
  panels_ = bottom;

  auto* split = new QSplitter(Qt::Vertical);
  split->addWidget(top);
  split->addWidget(bottom);
  split->setStretchFactor(0, 1);
  split->setSizes({560, 252});
  split->setHandleWidth(1);

  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addLayout(bar);
  layout->addWidget(split, 1);

  connect(timeline_, &TimelineWidget::selection_changed, this, [this] { details_->show_slice(timeline_->selected()); });
  connect(timeline_, &TimelineWidget::range_changed, this, [this] {
    breakdown_->show_range(timeline_->selected_range());
    Q_EMIT status_changed();
  });
  connect(timeline_, &TimelineWidget::view_changed, this, &RunPage::status_changed);
  connect(search_, &SearchBar::hit_chosen, timeline_, &TimelineWidget::reveal);
  connect(search_, &SearchBar::left, timeline_, [this] { timeline_->setFocus(); });
  setFocusProxy(timeline_);
}

// "resnet18-n4   4 ranks on node01, node02   5.600 s"
QString RunPage::heading() const {
  const auto& ranks = run_->trace.ranks;
  QStringList hosts;
  for (const auto& rank : ranks) {
    const QString host = QString::fromStdString(rank.host);
    if (!host.isEmpty() && !hosts.contains(host)) hosts << host;
  }
  QString where = QString("%1 %2").arg(ranks.size()).arg(ranks.size() == 1 ? "rank" : "ranks");
  if (hosts.size() > 4) {
    where += QString(" on %1 hosts").arg(hosts.size());
  } else if (!hosts.isEmpty()) {
    where += " on " + hosts.join(", ");
  }
  return QString("<b>%1</b>&nbsp;&nbsp;&nbsp; %2 &nbsp;·&nbsp; %3")
      .arg(run_->title().toHtmlEscaped(), where.toHtmlEscaped(),
           duration_text(static_cast<std::int64_t>(run_->end_ns - run_->begin_ns)));
}

QString RunPage::status() const {
  const TimeAxis& axis = timeline_->axis();
  const TimeRange view = axis.visible();
  const double step = std::max(view.length() / 1000, 1.0);
  QStringList parts{
      QString("%1 to %2").arg(time_text(view.begin_ns, step, view.end_ns), time_text(view.end_ns, step, view.end_ns)),
      duration_text(static_cast<std::int64_t>(view.length())) + " in view"};
  if (const auto range = timeline_->selected_range()) {
    parts << duration_text(static_cast<std::int64_t>(range->length())) + " selected";
  }
  const auto& ranks = run_->trace.ranks;
  parts << QString("%1 %2, %3 slices")
               .arg(ranks.size())
               .arg(ranks.size() == 1 ? "rank" : "ranks", count_text(run_->slices()));
  if (ranks.size() > 1 && run_->clock_error_ns() > 0) {
    parts << "clock error at most " + duration_text(std::llround(run_->clock_error_ns()));
  }
  if (std::any_of(ranks.begin(), ranks.end(), [](const auto& rank) { return rank.damaged; })) {
    parts << "damaged trace: see its details";
  }
  return parts.join("    ");
}

bool RunPage::select_name(const QString& name) {
  const auto& trace = run_->trace;
  const auto id = trace.names.find(name.toStdString());
  if (id == 0) return false;
  const TimeRange view = timeline_->axis().visible();
  std::optional<SliceRef> first, in_view;
  const auto start_of = [&](const SliceRef& ref) { return slices_of(*run_, ref).start_ns[ref.slice]; };
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
    for (std::size_t track = 0; track < run_->ranks[rank].own_tracks; ++track) {
      const auto& slices = trace.ranks[rank].tracks[track].slices;
      for (std::uint32_t i = 0; i < slices.size(); ++i) {
        if (trace.kind_of(slices, i).name != id) continue;
        const SliceRef ref{rank, track, i, false};
        const auto start = static_cast<double>(slices.start_ns[i]);
        if (!first || slices.start_ns[i] < start_of(*first)) first = ref;
        if (!in_view && start >= view.begin_ns && start < view.end_ns) in_view = ref;
      }
    }
  }
  if (!first) return false;
  timeline_->reveal(in_view ? *in_view : *first);
  return true;
}

}  // namespace paceline::viewer
