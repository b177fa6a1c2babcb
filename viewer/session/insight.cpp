// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/insight.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "analysis/report/build.h"
#include "analysis/report/outline.h"
#include "analysis/run/add_causes.h"

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

// The first sentence.
QString beginning(const std::string& text) {
  const QString whole = QString::fromStdString(text);
  const auto end = whole.indexOf(". ");
  QString first = end < 0 ? whole : whole.left(end);
  if (first.endsWith('.')) first.chop(1);
  return first;
}

// With a margin on both sides.
TimeRange around(const analysis::TimeInterval& time) {
  constexpr double margin = 0.25, shortest_ns = 1'000;
  const auto begin = double(time.start_ns), end = std::max(double(time.end_ns), begin + shortest_ns);
  return {begin - margin * (end - begin), end + margin * (end - begin)};
}

// The function that took longer on a late rank, or in an iteration that was slow; empty if it is not known.
QString function_of(const std::optional<analysis::CauseFunction>& function) {
  return function ? QString::fromStdString(function->function) : QString();
}
std::optional<StackPlace> stacks_of(const analysis::RunAnalysis& run, const Finding& finding,
                                    const analysis::FindingPlace& place) {
  const auto& causes = run.causes;
  if (place.iteration) {
    const bool slow = causes && causes->slow && std::ranges::binary_search(causes->slow->numbers, *place.iteration);
    return StackPlace{.of = StackPlace::Of::iteration,
                      .number = *place.iteration,
                      .function = slow ? function_of(causes->slow->function) : QString()};
  }
  if (!place.rank || (finding.kind != "slow rank" && finding.kind != "irregular rank")) return std::nullopt;
  return StackPlace{.of = StackPlace::Of::rank,
                    .number = run.per_rank[*place.rank].rank,
                    .function = causes ? function_of(causes->ranks[*place.rank].function) : QString()};
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

std::vector<ShownFinding> shown_findings(const analysis::Report& report) {
  constexpr std::size_t most_places = 3;
  std::vector<analysis::Finding> findings = report.findings;
  std::erase_if(findings, [](const analysis::Finding& finding) { return finding.is_change; });  // the bar has the first
  const auto others = std::ranges::stable_partition(findings, analysis::is_reason).begin();
  std::stable_sort(findings.begin(), others, analysis::comes_before);
  std::vector<ShownFinding> entries;
  for (const analysis::Finding& finding : findings) {
    const QString details = QString::fromStdString(analysis::reason_prefix(report, finding) + finding.text);
    const ShownFinding entry{.severity = finding.severity,
                             .text = insight::beginning(finding.text),
                             .details = details,
                             .rank = std::nullopt,
                             .range = std::nullopt,
                             .iteration = std::nullopt,
                             .stacks = std::nullopt};
    if (finding.places.empty() && analysis::is_reason(finding)) entries.push_back(entry);
    // Its sentence names the cause; each of the iterations has a finding of its own.
    const bool of_cause = finding.kind == "slow iterations";
    for (const analysis::FindingPlace& place : finding.places | std::views::take(of_cause ? 1 : most_places)) {
      ShownFinding& there = entries.emplace_back(entry);
      if (!place.name.empty() && !of_cause) there.text = QString::fromStdString(place.name);
      there.rank = place.rank;
      if (place.time) there.range = insight::around(*place.time);
      if (place.time && place.iteration) {
        there.iteration = TimeRange{double(place.time->start_ns), double(place.time->end_ns)};
      }
      there.stacks = insight::stacks_of(report.runs.front(), finding, place);
    }
  }
  return entries;
}

Insight examine(const Run& run) {
  const std::vector<analysis::CollectiveCalls>& calls = run.index->calls();
  const analysis::Collectives& collectives = run.index->collectives();
  std::vector<analysis::RunAnalysis> runs;
  runs.push_back(analysis::analyse_ranks(*run.index, run.path.toStdString()));
  analysis::add_causes(*run.index, runs.back());
  analysis::Report report = analysis::build_report(std::move(runs));
  std::vector<ShownFinding> findings = shown_findings(report);
  return {.figures = std::move(report.runs.front()),
          .verdict = QString::fromStdString(report.verdict.state),
          .findings = std::move(findings),
          .waits = insight::waits_of(collectives, calls),
          .collectives = CollectiveIndex(collectives, calls)};
}

}  // namespace paceline::viewer
