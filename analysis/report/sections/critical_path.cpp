// SPDX-License-Identifier: Apache-2.0
// The critical path of the iterations: which rank and phase decided how long they took.
#include <algorithm>
#include <array>
#include <numeric>

#include "analysis/report/sections.h"
#include "analysis/report/sentences.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace critical_path_section {

constexpr std::size_t most_rank_columns = 8, most_names = 15;
constexpr double holding_share = 0.75;  // of the work on the path, from which a rank holds it
constexpr double least_slack = 0.02;    // of an iteration; the other ranks must have more

std::int64_t iteration_ns(const CriticalPath& path) {
  return path.wall_ns / static_cast<std::int64_t>(path.iterations.size());
}

// The least slack of a rank over the phases that compute; nothing if it has none of them.
std::optional<std::int64_t> slack_of(const PathSlack& slack) {
  std::optional<std::int64_t> least;
  for (const Phase phase : {Phase::preprocess, Phase::forward, Phase::backward}) {
    const auto& of_phase = slack.phase_ns[static_cast<std::size_t>(phase)];
    if (of_phase) least = std::min(least.value_or(*of_phase), *of_phase);
  }
  return least;
}

// A rank that the test of lateness names, which does most of the work on the path while all others have slack.
struct PathHolder {
  std::size_t rank = 0;           // index into RunAnalysis::per_rank
  double share = 0;               // of the work on the path
  std::int64_t others_slack = 0;  // ns; each other rank has at least this much in each iteration
};

std::optional<PathHolder> path_holder(const RunAnalysis& run) {
  if (!run.critical_path || run.per_rank.size() < 2) return std::nullopt;
  const CriticalPath& path = *run.critical_path;
  std::vector<std::int64_t> work;
  for (std::size_t r = 0; r < path.rank_phase_ns.size(); ++r) work.push_back(path.work_ns(r));
  PathHolder holder;
  holder.rank = static_cast<std::size_t>(std::ranges::max_element(work) - work.begin());
  holder.share = share(work[holder.rank], std::accumulate(work.begin(), work.end(), std::int64_t{0}));
  std::optional<std::int64_t> least;
  for (std::size_t r = 0; r < path.slack.size(); ++r) {
    const auto slack = slack_of(path.slack[r]);
    if (slack && r != holder.rank) least = std::min(least.value_or(*slack), *slack);
  }
  const bool is_slow =
      std::ranges::any_of(run.lateness.late, [&](const LateRank& late) { return late.rank == holder.rank; });
  if (!is_slow) return std::nullopt;
  if (holder.share < holding_share || !least || share(*least, iteration_ns(path)) < least_slack) return std::nullopt;
  holder.others_slack = *least;
  return holder;
}

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  if (!run.critical_path || run.per_rank.size() < 2) return;
  const CriticalPath& path = *run.critical_path;
  std::vector<std::pair<std::int64_t, Phase>> phases;
  for (std::size_t phase = 0; phase < phase_count; ++phase) {
    phases.emplace_back(path.phase_ns(static_cast<Phase>(phase)), static_cast<Phase>(phase));
  }
  std::ranges::sort(phases, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text = fmt::format("The critical path of the iterations ({}) is {} {}", duration(path.wall_ns),
                                 percent(share(phases[0].first, path.wall_ns)), phase_name(phases[0].second));
  if (phases[1].first > 0) {
    text += fmt::format(" and {} {}", percent(share(phases[1].first, path.wall_ns)), phase_name(phases[1].second));
  }
  text += ": only what is on it can make a step shorter.";
  const auto holder = path_holder(run);
  if (!holder) {
    out.push_back({Severity::info, text});
    return;
  }
  const std::string rank = fmt::format(
      "Rank {} does {} of the work on the critical path. {} could compute {} longer in each iteration before a step "
      "took "
      "longer. ",
      run.per_rank[holder->rank].rank, percent(holder->share),
      run.per_rank.size() == 2 ? "The other rank" : "Each other rank", duration(holder->others_slack));
  out.push_back(
      {.severity = Severity::warning,
       .text = rank + text,
       .cost_s = 1e-9 * static_cast<double>(holder->others_slack) * static_cast<double>(path.iterations.size())});
}

std::size_t rank_columns(const RunAnalysis& run) { return std::min(run.per_rank.size(), most_rank_columns); }

Table phase_table(const RunAnalysis& run, const CriticalPath& path) {
  Table table{.id = "critical-path",
              .title = "Critical path of the iterations",
              .columns = {"phase", "on the path", "share"},
              .note =
                  "The path runs through all ranks, threads and streams, and adds up to the time of the iterations. "
                  "Communication on it is transfer, not waiting."};
  const std::size_t ranks = run.per_rank.size() > 1 ? rank_columns(run) : 0;
  for (std::size_t r = 0; r < ranks; ++r) table.columns.push_back(fmt::format("rank {}", run.per_rank[r].rank));
  std::vector<Phase> phases;
  for (std::size_t phase = 0; phase < phase_count; ++phase) {
    if (path.phase_ns(static_cast<Phase>(phase)) > 0) phases.push_back(static_cast<Phase>(phase));
  }
  std::ranges::stable_sort(phases, std::greater(), [&](Phase phase) { return path.phase_ns(phase); });
  for (const Phase phase : phases) {
    auto& row = table.rows.emplace_back();
    row = {std::string(phase_name(phase)), duration(path.phase_ns(phase)),
           percent(share(path.phase_ns(phase), path.wall_ns))};
    for (std::size_t r = 0; r < ranks; ++r) {
      row.push_back(duration(path.rank_phase_ns[r][static_cast<std::size_t>(phase)]));
    }
  }
  table.sums = 1;
  auto& sum = table.rows.emplace_back();
  sum = {"all iterations", duration(path.wall_ns), percent(1)};
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto& of = path.rank_phase_ns[r];
    sum.push_back(duration(std::accumulate(of.begin(), of.end(), std::int64_t{0})));
  }
  return table;
}

Table slack_table(const RunAnalysis& run, const CriticalPath& path) {
  Table table{.id = "slack",
              .title = "Slack: how much longer a rank could take before a step took longer",
              .columns = {"phase"},
              .note = "In each iteration, mean over the iterations. 0 is on the critical path."};
  const std::size_t ranks = rank_columns(run);
  if (run.per_rank.size() < 2) return table;
  for (std::size_t r = 0; r < ranks; ++r) table.columns.push_back(fmt::format("rank {}", run.per_rank[r].rank));
  for (const Phase phase :
       {Phase::preprocess, Phase::copy, Phase::launch, Phase::forward, Phase::backward, Phase::optimizer}) {
    std::vector<std::string> row = {std::string(phase_name(phase))};
    bool any = false;
    for (std::size_t r = 0; r < ranks; ++r) {
      const auto& slack = path.slack[r].phase_ns[static_cast<std::size_t>(phase)];
      any = any || slack;
      row.push_back(or_none(slack, duration));
    }
    if (any) table.rows.push_back(std::move(row));
  }
  return table;
}

std::string name_text(const PathName& name) {
  if (name.name.empty()) return "outside of all ranges";
  return name.domain.empty() ? name.name : name.domain + ": " + name.name;
}

void tables(const RunAnalysis& run, std::vector<Table>& out) {
  if (!run.critical_path) return;
  const CriticalPath& path = *run.critical_path;
  out.push_back(phase_table(run, path));
  Table names{.id = "critical-names",
              .title = "Ranges, calls and kernels on the critical path",
              .columns = {"name", "on the path", "share"}};
  for (const PathName& name : path.names) {
    if (names.rows.size() == most_names) break;
    names.rows.push_back({name_text(name), duration(name.ns), percent(share(name.ns, path.wall_ns))});
  }
  out.push_back(std::move(names));
  out.push_back(slack_table(run, path));
}

using PhaseTimes = std::array<std::int64_t, phase_count>;

// The phases that have any time.
Json phases_json(const PhaseTimes& times) {
  Json json = Json::object();
  for (std::size_t phase = 0; phase < phase_count; ++phase) {
    if (times[phase] > 0) json[std::string(phase_name(static_cast<Phase>(phase)))] = times[phase];
  }
  return json;
}

void figures(const RunAnalysis& run, Json& out) {
  if (!run.critical_path) return;
  const CriticalPath& path = *run.critical_path;
  Json& json = out["critical_path"];
  json["wall_ns"] = path.wall_ns;
  PhaseTimes sums{};
  for (std::size_t phase = 0; phase < phase_count; ++phase) sums[phase] = path.phase_ns(static_cast<Phase>(phase));
  json["phases_ns"] = phases_json(sums);
  for (const PathName& name : path.names) {
    json["names"].push_back({{"name", name.name}, {"domain", name.domain}, {"ns", name.ns}});
  }
  for (const PathIteration& iteration : path.iterations) {
    const auto most = std::ranges::max_element(iteration.work_ns);
    const auto phase = std::ranges::max_element(iteration.phase_ns);
    Json& entry = json["iterations"].emplace_back(
        Json{{"number", iteration.number},
             {"wall_ns", iteration.wall_ns},
             {"rank", run.per_rank[static_cast<std::size_t>(most - iteration.work_ns.begin())].rank},
             {"rank_work_ns", *most},
             {"phase", phase_name(static_cast<Phase>(phase - iteration.phase_ns.begin()))}});
    entry["phases_ns"] = phases_json(iteration.phase_ns);
    entry["work_ns"] = iteration.work_ns;
  }
}

void rank_figures(const RunAnalysis& run, std::size_t r, Json& out) {
  if (!run.critical_path) return;
  const CriticalPath& path = *run.critical_path;
  Json& json = out["critical_path"];
  json["phases_ns"] = phases_json(path.rank_phase_ns[r]);
  json["slack_ns"] = Json::object();
  for (std::size_t phase = 0; phase < phase_count; ++phase) {
    const std::string name(phase_name(static_cast<Phase>(phase)));
    if (path.slack[r].phase_ns[phase]) json["slack_ns"][name] = *path.slack[r].phase_ns[phase];
  }
}

}  // namespace critical_path_section

RunSection sections::critical_path() {
  using namespace critical_path_section;
  return {.findings = findings, .tables = tables, .figures = figures, .rank_figures = rank_figures};
}

}  // namespace paceline::analysis
