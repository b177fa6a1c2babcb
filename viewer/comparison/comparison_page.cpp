// SPDX-License-Identifier: Apache-2.0
#include "viewer/comparison/comparison_page.h"

#include <QHBoxLayout>
#include <QSignalBlocker>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "analysis/compare/render.h"
#include "viewer/panels/iteration_ruler.h"
#include "viewer/panels/legend.h"
#include "viewer/text/cut_label.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace comparison_page {

QVBoxLayout* column(QWidget* parent) {
  auto* layout = new QVBoxLayout(parent);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  return layout;
}

// "A   resnet18-n4   ·   /runs/resnet18-n4   ·   4 ranks   ·   5.600 s"
QString heading(const Run& run, const QString& letter) {
  QStringList facts{run.ranks_text(), length_text(run.end_ns - run.begin_ns)};
  if (run.path != run.title()) facts.prepend(run.path.toHtmlEscaped());
  return QString("<b>%1 &nbsp; %2</b> &nbsp; · &nbsp; %3")
      .arg(letter, run.title().toHtmlEscaped(), facts.join(" &nbsp; · &nbsp; "));
}

// Why no iteration can be aligned; empty if one can.
QString obstacle(const Coupling& coupling, const Run& a, const Run& b) {
  if (!coupling.iterations().empty()) return {};
  QStringList without;
  if (a.iterations.empty()) without << "A";
  if (b.iterations.empty()) without << "B";
  if (without.isEmpty()) return "No iteration of A has the number of one of B: the runs are aligned at their begins.";
  return QString(
             "%1 no iterations: the runs are aligned at their begins. Put an NVTX range named \"iteration\" around "
             "each training step.")
      .arg(without.size() == 2 ? "The runs have" : "Run " + without.front() + " has");
}

std::shared_ptr<const analysis::RunComparison> compare(const Run& a, const Run& b) {
  std::vector<analysis::RunProfile> base, fresh;
  base.push_back(analysis::profile_run(a.trace, a.path.toStdString()));
  fresh.push_back(analysis::profile_run(b.trace, b.path.toStdString()));
  return std::make_shared<const analysis::RunComparison>(analysis::compare_runs(std::move(base), std::move(fresh)));
}

}  // namespace comparison_page

ComparisonPage::ComparisonPage(std::shared_ptr<const Run> a, std::shared_ptr<const Run> b)
    : a_(std::move(a)), b_(std::move(b)), coupling_(a_.state, b_.state), comparing_(a_.document.background()) {
  auto* layout = comparison_page::column(this);
  layout->addWidget(make_heading());
  auto* splitter = new QSplitter(Qt::Vertical);
  splitter->setChildrenCollapsible(false);
  splitter->addWidget(make_side(a_, "A"));
  splitter->addWidget(make_side(b_, "B"));
  auto* below = new QWidget;
  auto* below_layout = comparison_page::column(below);
  below_layout->addWidget(new Legend(a_.document, a_.state));
  table_ = new DifferencesTable(a_.document, a_.state.selection, b_.document, b_.state.selection, coupling_);
  below_layout->addWidget(table_, 1);
  splitter->addWidget(below);
  splitter->setSizes({300, 300, 300});
  layout->addWidget(splitter, 1);
  connect(&coupling_, &Coupling::aligned, this, &ComparisonPage::show_alignment);
  for (Side* side : {&a_, &b_}) {
    connect(&side->state.time, &VisibleTime::view_changed, this, &TabPage::status_changed);
    connect(&side->state.selection, &Selection::range_changed, this, &TabPage::status_changed);
    show_waiting(side->document, side->state);
  }
  setFocusProxy(a_.timeline);
  show_alignment();
  compare();
}

// The widgets refer to the documents and to the states, which are destroyed before what ~QWidget destroys.
ComparisonPage::~ComparisonPage() { qDeleteAll(findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly)); }

QWidget* ComparisonPage::make_heading() {
  auto* heading = new QWidget;
  auto* row = new QHBoxLayout(heading);
  row->setContentsMargins(12, 5, 12, 5);
  row->setSpacing(12);
  auto* texts = new QVBoxLayout;
  texts->setSpacing(2);
  verdict_ = new CutLabel("Comparing the runs…");
  hint_ = new CutLabel;
  texts->addWidget(verdict_);
  texts->addWidget(hint_);
  row->addLayout(texts, 1);
  auto* label = new QLabel("&Aligned at");
  iteration_ = new QSpinBox;
  label->setBuddy(iteration_);
  iteration_->setAccessibleName("Iteration at which the runs are aligned");
  iteration_->setKeyboardTracking(false);
  iteration_->setPrefix("iteration ");
  iteration_->setSpecialValueText("begin of the runs");
  iteration_->setMinimumWidth(150);
  row->addWidget(label);
  row->addWidget(iteration_);
  const auto& common = coupling_.iterations();
  const auto [least, most] = std::ranges::minmax_element(common, {}, &CommonIteration::number);
  if (common.empty()) {
    iteration_->setRange(-1, -1);
    iteration_->setEnabled(false);
  } else {
    iteration_->setRange(static_cast<int>(least->number) - 1, static_cast<int>(most->number));
  }
  connect(iteration_, &QSpinBox::valueChanged, this, &ComparisonPage::choose);
  return heading;
}

QWidget* ComparisonPage::make_side(Side& side, const QString& letter) {
  auto* widget = new QWidget;
  widget->setObjectName("run " + letter);
  auto* layout = comparison_page::column(widget);
  auto* title = new CutLabel(comparison_page::heading(side.document.run(), letter));
  title->setContentsMargins(12, 4, 12, 4);
  layout->addWidget(title);
  layout->addWidget(new IterationRuler(side.document, side.state));
  side.timeline = new TimelineWidget(side.document, side.state);
  side.timeline->setAccessibleName("Timeline of run " + letter);
  // With and without a scroll bar, the axes would have different widths.
  side.timeline->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOn);
  if (side.document.run().ranks.size() > 1) side.state.arrangement.set_all_collapsed(true);
  layout->addWidget(side.timeline, 1);
  return widget;
}

ViewState& ComparisonPage::state() { return window()->focusWidget() == b_.timeline ? b_.state : a_.state; }

QString ComparisonPage::title() const {
  return QString("%1 and %2").arg(a_.document.run().title(), b_.document.run().title());
}

QString ComparisonPage::status() const {
  const TimeRange view = a_.state.time.axis().visible();
  QStringList parts{duration_text(std::llround(view.length())) + " in view"};
  const auto here = a_.state.selection.range(), there = b_.state.selection.range();
  if (here && there) {
    parts << QString("%1 of A and %2 of B selected")
                 .arg(duration_text(std::llround(here->length())), duration_text(std::llround(there->length())));
  }
  return parts.join("    ");
}

void ComparisonPage::compare() {
  comparing_.start(
      [a = a_.document.shared_run(), b = b_.document.shared_run()](const Ticket&) {
        return comparison_page::compare(*a, *b);
      },
      [this](std::shared_ptr<const analysis::RunComparison> comparison) {
        verdict_->setText(QString("<b>%1</b>")
                              .arg(QString::fromStdString(analysis::comparison_headline(*comparison)).toHtmlEscaped()));
        table_->set_comparison(std::move(comparison));
      });
}

void ComparisonPage::choose(int number) {
  if (number == iteration_->minimum()) {
    coupling_.align_at(std::nullopt);
    return;
  }
  // Some numbers may be missing: the nearest one in the direction of the change is meant.
  const auto& common = coupling_.iterations();
  const auto before = coupling_.aligned_at().value_or(iteration_->minimum());
  std::optional<std::int64_t> nearest;
  for (const CommonIteration& one : common) {
    const bool beyond = number >= before ? one.number >= number : one.number <= number;
    if (beyond && (!nearest || std::abs(one.number - number) < std::abs(*nearest - number))) nearest = one.number;
  }
  if (nearest) coupling_.select_iteration(*nearest);
  show_alignment();
}

void ComparisonPage::show_alignment() {
  const auto at = coupling_.aligned_at();
  {
    const QSignalBlocker blocker(iteration_);
    iteration_->setValue(at ? static_cast<int>(*at) : iteration_->minimum());
  }
  const QString obstacle = comparison_page::obstacle(coupling_, a_.document.run(), b_.document.run());
  hint_->setText(!obstacle.isEmpty() ? obstacle
                 : at
                     ? QString("Iteration %1 begins in the same column in both runs. A click on an iteration of either "
                               "run selects and aligns it.")
                           .arg(*at)
                     : QString("The runs begin in the same column."));
}

void ComparisonPage::finish() {
  a_.document.background().finish();
  b_.document.background().finish();
}

bool ComparisonPage::idle() { return a_.document.background().idle() && b_.document.background().idle(); }

}  // namespace paceline::viewer
