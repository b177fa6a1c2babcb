// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/flame_graph.h"

#include <QHBoxLayout>
#include <QScrollArea>
#include <QSignalBlocker>
#include <algorithm>

#include "viewer/drawing/labels.h"
#include "viewer/panels/table_panel.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {

FlameGraph::FlameGraph(Document& document, ViewState& state)
    : LazyPanel(document, state.selection),
      state_(state),
      what_(new QComboBox),
      one_(new QSpinBox),
      other_(new QSpinBox),
      find_(new QLineEdit),
      status_(new QLabel),
      chart_(new FlameChart(document.run())) {
  setAccessibleName("Flame graph panel");
  what_->addItems({"Ranges", "Samples", "Two ranks", "Two iterations"});  // as Show
  what_->setToolTip(
      "Ranges, functions in samples of stacks, or the difference between the samples of two ranks or two "
      "iterations");
  what_->setAccessibleName("What the flame graph shows");
  if (has_samples(document.run())) what_->setCurrentIndex(int(Show::samples));
  one_->setAccessibleName("The one");
  other_->setAccessibleName("The other");
  find_->setPlaceholderText("Highlight");
  find_->setAccessibleName("Highlight names in the flame graph");
  find_->setClearButtonEnabled(true);
  find_->setMaximumWidth(180);
  status_->setFont(with_size(font(), 11));
  status_->setWordWrap(true);
  status_->setContentsMargins(12, 0, 8, 2);
  auto* bar = new QHBoxLayout;
  bar->setContentsMargins(8, 3, 8, 3);
  for (QWidget* one : std::initializer_list<QWidget*>{what_, one_, other_}) bar->addWidget(one);
  bar->addStretch(1);
  bar->addWidget(find_, 1);
  auto* scroll = new QScrollArea;  // stacks are deeper than panels are high
  scroll->setWidget(chart_);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setFocusPolicy(Qt::NoFocus);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addLayout(bar);
  layout->addWidget(status_);
  layout->addWidget(scroll, 1);
  setFocusProxy(chart_);
  set_limits();
  connect(what_, &QComboBox::currentIndexChanged, this, [this] {
    set_limits();
    set_stale();
  });
  for (QSpinBox* box : {one_, other_}) connect(box, &QSpinBox::valueChanged, this, [this] { set_stale(); });
  connect(find_, &QLineEdit::textChanged, this, &FlameGraph::show_status);
  connect(chart_, &FlameChart::chosen, this, &FlameGraph::choose);
  connect(&selection_, &Selection::range_changed, this, [this] { set_stale(); });
  connect(&state.commands, &Commands::stacks_wanted, this, &FlameGraph::compare);
}

void FlameGraph::show_what(Show what) { what_->setCurrentIndex(int(what)); }

void FlameGraph::compare(const StackPlace& place) {
  if (!has_samples(document_.run())) return;
  show_what(place.of == StackPlace::Of::rank ? Show::ranks : Show::iterations);
  one_->setValue(int(place.number));
  other_->setValue(other_->minimum());
  find_->setText(place.function);
  Q_EMIT state_.commands.panel_wanted("Flame graph");
}

// The rank that others waited for longest, or the longest iteration, against all others.
void FlameGraph::set_limits() {
  const bool compares = shown() == Show::ranks || shown() == Show::iterations;
  one_->setVisible(compares);
  other_->setVisible(compares);
  if (!compares) return;
  const Run& run = document_.run();
  std::int64_t least = 0, greatest = 0, chosen = 0, longest = -1;
  bool first = true;
  const auto offer = [&](std::int64_t number, std::int64_t length) {
    least = first ? number : std::min(least, number);
    greatest = first ? number : std::max(greatest, number);
    first = false;
    if (length > longest) chosen = number, longest = length;
  };
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    if (shown() == Show::ranks) offer(run.trace.ranks[rank].rank, state_.arrangement.waiting_caused_ns(rank));
    if (shown() == Show::ranks) continue;
    for (const auto& iteration : run.index->iterations(rank)) {
      if (iteration.finished) offer(iteration.number, iteration.duration_ns);
    }
  }
  const bool ranks = shown() == Show::ranks;
  const QSignalBlocker no_one(one_), no_other(other_);
  const QString kind = ranks ? "rank " : "iteration ";
  one_->setPrefix(kind);
  other_->setPrefix("against " + kind);
  other_->setSpecialValueText(ranks ? "against the other ranks" : "against the other iterations");
  one_->setRange(int(least), int(greatest));
  other_->setRange(int(least) - 1, int(greatest));
  one_->setValue(int(chosen));
  other_->setValue(other_->minimum());
}

std::optional<FlameSides> FlameGraph::sides() const {
  if (shown() != Show::ranks && shown() != Show::iterations) return std::nullopt;
  FlameSides sides{.of = shown() == Show::ranks ? FlameSides::Of::ranks : FlameSides::Of::iterations,
                   .one = one_->value(),
                   .other = std::nullopt};
  if (other_->value() > other_->minimum()) sides.other = other_->value();
  return sides;
}

void FlameGraph::refresh() {
  const Part part = selected_part();
  task_.start(
      [run = document_.shared_run(), part, ranges = shown() == Show::ranges, sides = sides()](const Ticket& ticket) {
        return ranges ? range_flames(*run, part, ticket) : sample_flames(*run, part, sides, ticket);
      },
      [this, part](FlameTree made) {
        part_ = part;
        computed_ = true;
        chart_->show_tree(std::move(made));
        show_status();
      });
}

void FlameGraph::show_status() {
  if (!computed_) return status_->setText("computing…");
  const FlameTree& tree = chart_->tree();
  const double found = chart_->highlight(find_->text());
  const QString in_part = part_text(part_);
  QString text;
  if (tree.of == FlameTree::Of::ranges) {
    text = tree.nodes[0].total_ns == 0
               ? QString("No slices %1").arg(in_part)
               : QString(
                     "Time by what is inside what, %1. A click goes to the longest slice; a double click enlarges, "
                     "Backspace goes back.")
                     .arg(in_part);
  } else if (!has_samples(document_.run())) {
    text = "This run has no samples of stacks. Record them with: paceline record --sample 100 -- PROGRAM";
  } else if (tree.of == FlameTree::Of::samples) {
    text = tree.nodes[0].count == 0 ? QString("No samples %1").arg(in_part)
                                    : QString("%1 %2, by what called what. A click enlarges, Backspace goes back.")
                                          .arg(plural_text(tree.nodes[0].count, "sample", "samples"), in_part);
  } else if (tree.nodes[0].total_ns == 0 || tree.nodes[0].other_ns == 0) {
    text = QString("No samples of %1").arg(tree.nodes[0].total_ns == 0 ? tree.one : tree.other);
  } else {
    text = QString("Red: a larger share in %1; blue: in %2. The shares are those of the samples")
               .arg(tree.one, tree.other);
    if (shown() == Show::ranks) text += " " + part_text({part_.range, {}});
    text += ".";
  }
  if (!find_->text().isEmpty()) text = QString("%1 in \"%2\". ").arg(share_text(found), find_->text()) + text;
  status_->setText(text);
}

// A box of ranges leads to the longest of them; one of samples is enlarged, or its caller if it is enlarged.
void FlameGraph::choose(std::uint32_t node) {
  const FlameNode& one = nodes()[node];
  if (chart_->tree().of != FlameTree::Of::ranges) return chart_->zoom_to(node == chart_->top() ? one.parent : node);
  if (one.count > 0) selection_.go_to({.slice = one.longest});
}

}  // namespace paceline::viewer
