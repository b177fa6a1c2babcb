// SPDX-License-Identifier: Apache-2.0
#include "viewer/window/run_page.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "viewer/panels/panel.h"
#include "viewer/panels/slice_sums.h"
#include "viewer/session/recent_runs.h"
#include "viewer/session/view_file.h"
#include "viewer/text/cut_label.h"
#include "viewer/text/time_text.h"
#include "viewer/timeline/timeline_widget.h"
#include "viewer/window/exports.h"

namespace paceline::viewer {
namespace run_page {

template <class Layout>
Layout* without_margins(Layout* layout) {
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  return layout;
}

// The first slice of this name that begins in the range, else the first in the run.
std::optional<SliceRef> first_named(const Run& run, analysis::NameId name, TimeRange range, const Ticket& ticket) {
  std::optional<SliceRef> first, in_range;
  const auto start_of = [&](const SliceRef& ref) { return slices_of(run, ref).start_ns[ref.slice]; };
  for (std::size_t rank = 0; rank < run.trace.ranks.size() && !ticket.cancelled(); ++rank) {
    for (std::size_t track = 0; track < run.trace.ranks[rank].tracks.size(); ++track) {
      const auto& slices = run.trace.ranks[rank].tracks[track].slices;
      for (std::uint32_t i = 0; i < slices.size(); ++i) {
        if (run.trace.kind_of(slices, i).name != name) continue;
        const SliceRef ref{.rank = rank, .track = track, .slice = i};
        const auto start = static_cast<double>(slices.start_ns[i]);
        if (!first || slices.start_ns[i] < start_of(*first)) first = ref;
        if (!in_range && start >= range.begin_ns && start < range.end_ns) in_range = ref;
      }
    }
  }
  return in_range ? in_range : first;
}

QString empty_text(const Run& run) {
  QString text = QString("<h3>This trace holds no events</h3><p>%1 has no ranges, no MPI calls and no GPU work.</p>")
                     .arg(run.path.toHtmlEscaped());
  text +=
      "<p>Put NVTX ranges into the program, or run one that calls MPI, and record it again: "
      "<code>paceline record -o RUN PROGRAM</code>. If events were expected, <code>paceline info RUN</code> shows what "
      "was lost and whether a file is damaged.</p>";
  for (const std::string& note : run.trace.notes) text += "<p>" + QString::fromStdString(note).toHtmlEscaped() + "</p>";
  return text;
}

}  // namespace run_page

RunPage::RunPage(std::shared_ptr<const Run> opened)
    : document_(std::move(opened)),
      state_(document_.run()),
      selecting_(document_.background()),
      exporting_(document_.background()) {
  auto* bar = new QHBoxLayout;
  bar->setContentsMargins(12, 5, 8, 5);
  bar->addWidget(new CutLabel(heading()), 1);
  auto* top = new QWidget;
  auto* top_layout = run_page::without_margins(new QVBoxLayout(top));
  auto* timeline = new TimelineWidget(document_, state_);
  top_layout->addWidget(timeline, 1);
  if (run().slices == 0) {
    auto* hint = new QLabel(run_page::empty_text(run()));
    hint->setWordWrap(true);
    hint->setContentsMargins(24, 24, 24, 24);
    top_layout->insertWidget(0, hint);
  }
  docks_ = new PanelDocks(top);
  for (const PanelKind& kind : panel_kinds()) {
    QWidget* panel = kind.make(document_, state_);
    switch (kind.place) {
      case PanelKind::Place::title:
        bar->addWidget(panel);
        break;
      case PanelKind::Place::above:
        top_layout->insertWidget(top_layout->indexOf(timeline), panel);
        break;
      case PanelKind::Place::below:
        top_layout->addWidget(panel);
        break;
      case PanelKind::Place::tab:
        docks_->add_tab(kind.title, panel);
        break;
      case PanelKind::Place::right:
        docks_->add_right(kind.title, panel);
    }
  }

  auto* layout = run_page::without_margins(new QVBoxLayout(this));
  layout->addLayout(bar);
  layout->addWidget(docks_, 1);

  connect(&state_.selection, &Selection::range_changed, this, &RunPage::status_changed);
  connect(&state_.time, &VisibleTime::view_changed, this, &RunPage::status_changed);
  connect(&state_.selection, &Selection::slices_changed, this, &RunPage::status_changed);
  connect(&state_.arrangement, &Arrangement::panels_changed, docks_,
          [this] { docks_->set_shown(state_.arrangement.panels_shown()); });
  connect(&state_.commands, &Commands::panel_wanted, docks_, [this](const QString& title) {
    state_.arrangement.set_panels_shown(true);
    docks_->bring(title);
  });
  show_waiting(document_, state_);
  // The first view: the iterations, which are what the run is about.
  if (const auto& iterations = run().iterations; !iterations.empty()) {
    const double begin = double(iterations.front().start_ns), end = double(iterations.back().end_ns);
    const double margin = 0.01 * (end - begin);
    state_.time.show_part({begin - margin, end + margin});
  }
  setFocusProxy(timeline);
}

// The widgets refer to the document and to the state, which are destroyed before what ~QWidget destroys.
RunPage::~RunPage() { qDeleteAll(findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly)); }

// A low window has no room for the panels at the bottom. Ctrl+P still shows them.
void RunPage::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  constexpr int least_height = 560;
  const bool room = height() >= least_height;
  if (room != std::exchange(room_for_panels_, room)) state_.arrangement.set_panels_shown(room);
}

// "resnet18-n4   4 ranks on node01, node02   5.600 s"
QString RunPage::heading() const {
  QString where = run().ranks_text();
  if (run().hosts.size() > 4) {
    where += QString(" on %1 hosts").arg(run().hosts.size());
  } else if (!run().hosts.isEmpty()) {
    where += " on " + run().hosts.join(", ");
  }
  return QString("<b>%1</b>&nbsp;&nbsp;&nbsp; %2 &nbsp;·&nbsp; %3")
      .arg(run().title().toHtmlEscaped(), where.toHtmlEscaped(), length_text(run().end_ns - run().begin_ns));
}

QString RunPage::status() const {
  const TimeRange view = state_.time.axis().visible();
  const double step = std::max(view.length() / 1000, 1.0);
  QStringList parts{
      QString("%1 to %2").arg(time_text(view.begin_ns, step, view.end_ns), time_text(view.end_ns, step, view.end_ns)),
      length_text(view.length()) + " in view"};
  if (const auto range = state_.selection.range()) {
    parts << length_text(range->length()) + " selected";
  }
  if (const auto& slices = state_.selection.slices(); slices.size() > 1) parts << sum_text(sum_of(run(), slices));
  const auto& ranks = run().trace.ranks;
  parts << QString("%1, %2").arg(run().ranks_text(), plural_text(run().slices, "slice", "slices"));
  if (const QString error = clock_error_text(run()); !error.isEmpty()) parts << "clock error " + error;
  if (std::ranges::any_of(ranks, &analysis::Rank::damaged)) parts << "damaged trace: see its details";
  return parts.join("    ");
}

void RunPage::restore_view() {
  const QString saved = view_file_of(run().path), name = QFile::exists(saved) ? saved : kept_view_file(run().path);
  QFile file(name);
  if (!file.open(QIODevice::ReadOnly)) return;
  if (const QByteArray layout = view_from_json(file.readAll(), name, state_); !layout.isEmpty())
    docks_->restore(layout);
}

void RunPage::save_view() { viewer::save_view(view_file_of(run().path), state_, docks_->layout()); }

void RunPage::keep_view(bool everywhere) {
  const QString saved = view_file_of(run().path), kept = kept_view_file(run().path);
  if (!QFile::exists(saved) && !everywhere) return;
  try {
    if (QFile::exists(saved)) return save_view();
    QDir().mkpath(QFileInfo(kept).path());
    viewer::save_view(kept, state_, docks_->layout());
  } catch (const std::exception&) {  // read-only by now
  }
}

void RunPage::export_trace(const QString& filter, const QString& file) {
  const Part part{state_.selection.range(), state_.selection.ranks()};
  exporting_.start(
      [run = document_.shared_run(), part, filter, file](const Ticket&) {
        save_trace(*run, part, filter, file);
        return file;
      },
      [this](const QString& written) { Q_EMIT saved(written); });
}

void RunPage::select_name(const QString& name, TimeRange range, std::function<void(bool)> done) {
  const auto id = run().trace.names.find(name.toStdString());
  if (id == 0) return done(false);
  selecting_.start([run = document_.shared_run(), id,
                    range](const Ticket& ticket) { return run_page::first_named(*run, id, range, ticket); },
                   [this, done](std::optional<SliceRef> found) {
                     if (found) state_.selection.reveal_closely(*found);
                     done(found.has_value());
                   });
}

}  // namespace paceline::viewer
