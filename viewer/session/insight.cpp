#include "viewer/session/insight.h"

#include <algorithm>
#include <utility>

#include "analysis/report/build.h"
#include "analysis/report/sections.h"
#include "analysis/text/numbers.h"

namespace paceline::viewer {

WaitTimeline::WaitTimeline(std::vector<Wait> waits) : waits_(std::move(waits)) {
  std::ranges::stable_sort(waits_, {}, &Wait::from_ns);
  std::int64_t sum = 0;
  for (const Wait& wait : waits_) {
    sum_ns_.push_back(sum);
    sum += wait.length_ns();
  }
}

std::span<const Wait> WaitTimeline::between(double from_ns, double to_ns) const {
  const auto begin =
      std::ranges::partition_point(waits_, [&](const Wait& wait) { return double(wait.until_ns) <= from_ns; });
  const auto end =
      std::partition_point(begin, waits_.end(), [&](const Wait& wait) { return double(wait.from_ns) < to_ns; });
  return {begin, end};
}

std::int64_t WaitTimeline::waited_before(std::int64_t time_ns, std::size_t& begun) const {
  std::size_t step = 1;
  while (begun + step <= waits_.size() && waits_[begun + step - 1].from_ns < time_ns) {
    begun += step;
    step *= 2;
  }
  const auto first = waits_.begin() + std::ptrdiff_t(begun);
  const auto last = waits_.begin() + std::ptrdiff_t(std::min(begun + step, waits_.size()));
  begun = std::size_t(std::partition_point(first, last, [&](const Wait& wait) { return wait.from_ns < time_ns; }) -
                      waits_.begin());
  if (begun == 0) return 0;
  const Wait& wait = waits_[begun - 1];
  return sum_ns_[begun - 1] + std::min(time_ns, wait.until_ns) - wait.from_ns;
}

std::int64_t WaitTimeline::waited_ns(std::int64_t from_ns, std::int64_t to_ns) const {
  std::size_t begun = 0;
  const std::int64_t before = waited_before(from_ns, begun);
  return std::max<std::int64_t>(waited_before(to_ns, begun) - before, 0);
}

const Wait* WaitTimeline::of_call(std::size_t track, std::uint32_t slice, std::int64_t start_ns) const {
  const auto found = std::ranges::equal_range(waits_, start_ns, {}, &Wait::from_ns);
  const auto wait =
      std::ranges::find_if(found, [&](const Wait& one) { return one.track == track && one.slice == slice; });
  return wait == found.end() ? nullptr : &*wait;
}

namespace insight {

using analysis::Collective;
using analysis::Finding;
using analysis::RunAnalysis;
using analysis::Severity;

// The collective in which this rank made the others wait longest.
const Collective* worst_of(const analysis::Collectives& collectives, std::uint32_t rank) {
  const Collective* worst = nullptr;
  std::int64_t most = 0;
  for (const Collective& collective : collectives.matched) {
    if (!collective.timed || collective.last_rank != rank) continue;
    std::int64_t waited = 0;
    for (const auto& call : collective.calls) waited += collective.wait_ns(call);
    if (waited > most) worst = &collective, most = waited;
  }
  return worst;
}

TimeRange around(double begin_ns, double end_ns, double margin) {
  const double more = margin * (end_ns - begin_ns);
  return {begin_ns - more, end_ns + more};
}

TimeRange range_of(const Collective& collective) {
  double begin = double(collective.last_start_ns), end = begin + double(collective.transfer_ns);
  for (const auto& call : collective.calls) begin = std::min(begin, double(call.blocked_from_ns));
  return around(begin, end, 0.3);
}

// The report names ranks that are late beyond chance. In a run too short for that test, a rank is named only if it was
// the last in, and caused, at least four fifths of the waiting, which chance does not do.
std::vector<std::uint32_t> slow_ranks(const RunAnalysis& run) {
  std::vector<std::uint32_t> slow;
  for (const auto& late : run.lateness.late) slow.push_back(late.rank);
  if (run.lateness.judged || run.per_rank.size() < 2) return slow;
  std::int64_t caused = 0, wall = 0;
  std::uint64_t last = 0;
  for (const auto& waits : run.waits) caused += waits.caused_ns, last += waits.last_count;
  for (const auto& rank : run.per_rank) wall += rank.wall_ns;
  const auto worst = std::ranges::max_element(run.waits, {}, &analysis::RankWaits::caused_ns);
  if (5 * worst->caused_ns > 4 * caused && 5 * worst->last_count > 4 * last && 50 * caused > wall) {
    slow.push_back(static_cast<std::uint32_t>(worst - run.waits.begin()));
  }
  return slow;
}

void add_slow_ranks(const RunAnalysis& run, const analysis::Collectives& collectives, const std::string& details,
                    std::vector<ShownFinding>& out) {
  constexpr std::size_t most = 3;
  const auto slow = slow_ranks(run);
  for (std::size_t i = 0; i < std::min(most, slow.size()); ++i) {
    const auto taken_part = std::ranges::count_if(collectives.matched, [&](const Collective& collective) {
      return collective.timed &&
             std::ranges::any_of(collective.calls, [&](const auto& call) { return call.rank == slow[i]; });
    });
    const Collective* worst = worst_of(collectives, slow[i]);
    out.push_back({.severity = Severity::warning,
                   .text = QString("Rank %1 arrived last in %2 of %3")
                               .arg(run.per_rank[slow[i]].rank)
                               .arg(run.waits[slow[i]].last_count)
                               .arg(plural_text(std::size_t(taken_part), "collective", "collectives")),
                   .details = QString::fromStdString(details),
                   .rank = slow[i],
                   .range = worst ? std::optional(range_of(*worst)) : std::nullopt});
  }
}

// Iterations that took at least 1.5 times the median, the longest first. The warm-up does not count.
void add_slow_iterations(const Run& run, const RunAnalysis& figures, std::vector<ShownFinding>& out) {
  constexpr std::size_t most = 3;
  const std::int64_t median = figures.iterations.steady_median_ns;
  std::vector<RunIteration> slow = run.iterations;
  slow.erase(slow.begin(), slow.begin() + std::ptrdiff_t(std::min(slow.size(), figures.iterations.warmup)));
  const auto times = [&](const RunIteration& one) { return double(one.duration_ns()) / double(median); };
  std::erase_if(slow, [&](const RunIteration& one) { return median <= 0 || times(one) < 1.5; });
  std::ranges::stable_sort(slow, std::greater(), &RunIteration::mean_ns);
  slow.resize(std::min(most, slow.size()));
  for (const RunIteration& one : slow) {
    const QString factor = QString("%1 times the median").arg(times(one), 0, 'f', 1);
    out.push_back({.severity = Severity::warning,
                   .text = QString("Iteration %1 is slow: %2").arg(one.number).arg(factor),
                   .details = QString("Iteration %1 took %2, %3 of %4. It is the mean over the ranks.")
                                  .arg(one.number)
                                  .arg(QString::fromStdString(analysis::duration(one.duration_ns())), factor,
                                       QString::fromStdString(analysis::duration(median))),
                   .rank = std::nullopt,
                   .range = around(double(one.start_ns), double(one.end_ns), 0.1)});
  }
}

// The first sentence.
QString beginning(const std::string& text) {
  const QString whole = QString::fromStdString(text);
  const auto end = whole.indexOf(". ");
  QString first = end < 0 ? whole : whole.left(end);
  if (first.endsWith('.')) first.chop(1);
  return first;
}

// Where losses and damage begin.
void lead_to_losses(const Run& run, ShownFinding& finding) {
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    if (!run.ranks[rank].incomplete) continue;
    finding.rank = rank;
    if (run.ranks[rank].unrecorded.empty()) return;
    const Unrecorded& first = run.ranks[rank].unrecorded.front();
    finding.range = around(double(first.start_ns), std::max(double(first.end_ns), double(first.start_ns) + 1e6), 1);
    return;
  }
}

std::vector<WaitTimeline> waits_of(const analysis::Collectives& collectives,
                                   std::span<const analysis::CollectiveCalls> ranks) {
  std::vector<WaitTimeline> timelines;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    std::vector<Wait> waits;
    for (const analysis::BlockedTime& interval : collectives.blocked[rank]) {
      const Collective& collective = collectives.matched[interval.collective];
      if (interval.wait_ns() <= 0 || rank == collective.last_rank) continue;
      const auto& own = *std::ranges::find(collective.calls, rank, &analysis::MemberCall::rank);
      const analysis::CollectiveCall& place = ranks[rank].calls[own.call];
      waits.push_back({.track = place.track,
                       .slice = place.slice,
                       .from_ns = interval.start_ns,
                       .until_ns = interval.start_ns + interval.wait_ns(),
                       .end_ns = interval.end_ns,
                       .for_rank = collective.last_rank});
    }
    timelines.emplace_back(std::move(waits));
  }
  return timelines;
}

}  // namespace insight

Insight examine(const Run& run) {
  namespace sections = analysis::sections;
  using namespace insight;
  const std::vector<analysis::CollectiveCalls>& calls = run.index->calls();
  const analysis::Collectives& collectives = run.index->collectives();
  std::vector<WaitTimeline> waits = insight::waits_of(collectives, calls);
  CollectiveIndex index(collectives, calls);
  std::vector<analysis::RunAnalysis> runs;
  runs.push_back(analysis::analyse_ranks(*run.index, run.path.toStdString()));
  analysis::Report report = analysis::build_report(std::move(runs));
  Insight found{.figures = std::move(report.runs.front()),
                .verdict = QString::fromStdString(report.verdict.state),
                .findings = {},
                .waits = std::move(waits),
                .collectives = std::move(index)};
  std::vector<ShownFinding> others;
  std::string waiting;
  for (const analysis::RunSection& section : analysis::run_sections()) {
    if (section.findings == nullptr) continue;
    std::vector<Finding> findings;
    section.findings(found.figures, findings);
    for (const Finding& finding : findings) {
      if (section.findings == sections::waiting().findings) {
        waiting = finding.text;
      } else if (finding.severity != Severity::info) {
        ShownFinding& shown = others.emplace_back();
        shown = {.severity = finding.severity,
                 .text = beginning(finding.text),
                 .details = QString::fromStdString(finding.text),
                 .rank = std::nullopt,
                 .range = std::nullopt};
        if (section.findings == sections::losses().findings) lead_to_losses(run, shown);
      }
    }
  }
  add_slow_ranks(found.figures, collectives, waiting, found.findings);
  add_slow_iterations(run, found.figures, found.findings);
  std::ranges::stable_sort(others, std::greater(), &ShownFinding::severity);
  std::ranges::move(others, std::back_inserter(found.findings));
  return found;
}

}  // namespace paceline::viewer
