// SPDX-License-Identifier: Apache-2.0
// Who waits for whom in the collectives, and which ranks come later than chance explains.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/report/cause_text.h"
#include "analysis/report/lateness_judgement.h"
#include "analysis/report/sections.h"
#include "analysis/report/sentences.h"
#include "analysis/report/values.h"
#include "analysis/statistics/block_contrasts.h"
#include "analysis/text/lists.h"

namespace paceline::analysis {
namespace waiting_section {

// How many iterations more the test would need: " of 41, which asks for some 280 more", two digits, rounded up. Of very
// few iterations, the autocorrelation time says little, and " of 41" is all.
std::string time_text(const LatenessTest& test) {
  constexpr double most_times_longer = 10;
  std::string text = " of " + significant(test.autocorrelation_time, 2);
  const auto have = static_cast<double>(test.iterations);
  const double lacks = least_contrast_times * test.autocorrelation_time - have;
  if (lacks <= 0 || lacks > most_times_longer * have) return text;
  const double unit = std::max(std::pow(10, std::floor(std::log10(lacks)) - 1), 1.0);
  return text + fmt::format(", which asks for some {} more", count(unit * std::ceil(lacks / unit)));
}

std::string why_not_judged(const LatenessTest& test) {
  if (test.iterations == 0) {
    return " The ranks were not tested for lateness: no collective of all ranks lies within an iteration that all "
           "ranks finished.";
  }
  return fmt::format(
      " {}: after warm-up, {} collectives of all ranks, too few for an autocorrelation time{}.",
      test.tests > 0 ? "Only a rank that is clearly late would be named" : "The ranks were not tested for lateness",
      plural(test.iterations, "iteration has", "iterations have"), time_text(test));
}

// When the rank is late, and in which phase it loses the time.
std::string cause_text(const LatenessCause& cause, std::size_t iterations) {
  using enum LatenessPattern::Shape;
  const LatenessPattern& pattern = cause.pattern;
  std::string text;
  switch (pattern.shape) {
    case steady:
      if (10 * pattern.affected < 9 * iterations && pattern.affected > 0) {
        text = fmt::format(" It is late in {} of {} iterations.", pattern.affected, iterations);
      }
      break;
    case since:
      text = fmt::format(" It is late from iteration {} on.", pattern.at);
      break;
    case until:
      text = fmt::format(" It is late until iteration {}.", pattern.at);
      break;
    case periodic:
      text = fmt::format(" Most of that comes from one of every {} iterations, beginning with iteration {}.",
                         pattern.period, pattern.at);
      break;
    case single:
      text = fmt::format(" Most of that comes from {} of {} iterations.", pattern.affected, iterations);
      break;
  }
  if (cause.phase) {
    text += fmt::format(" Its {} takes {} longer ({} of the delay).", slow_phase_name(*cause.phase),
                        seconds(1e-9 * cause.phase->ns), percent(std::min(cause.phase->share_of_delay, 1.0)));
  }
  return text;
}

std::string chance_text(const LateRank& late) {
  return fmt::format(" By chance, fewer than {} of 1,000 reports of balanced runs would accuse anybody this clearly",
                     late.p < 0.001 ? "1" : fixed(std::ceil(1000 * late.p), 0));
}

// The waiting that the lateness of one rank or host cost `waiting` other ranks, over all iterations that were tested.
double rank_seconds(const RunAnalysis& run, const LateRank& late, std::size_t waiting) {
  const auto& steps_ns = run.lateness_table.step_ns;
  return 1e-9 * late.share_of_step * std::accumulate(steps_ns.begin(), steps_ns.end(), 0.0) *
         static_cast<double>(waiting);
}

double rank_seconds_of_rank(const RunAnalysis& run, const LateRank& late) {
  return rank_seconds(run, late, run.per_rank.size() - 1);
}

double rank_seconds_of_host(const RunAnalysis& run, const LateRank& late) {
  const auto own = std::ranges::count(run.per_rank, run.hosts[late.rank], &RankSummary::host);
  return rank_seconds(run, late, run.per_rank.size() - static_cast<std::size_t>(own));
}

// "8.3 % of a step, 12.4 rank-seconds of waiting in all"
std::string cost_text(const LateRank& late, double rank_seconds) {
  return fmt::format("{} of a step, {} rank-seconds of waiting in all", percent(late.share_of_step),
                     significant(rank_seconds, 3));
}

// The hosts all of whose ranks are late, each with the cause of its latest rank.
std::string slow_hosts_text(const RunAnalysis& run) {
  std::string text;
  for (const LateRank& late : run.host_lateness.late) {
    const std::string& host = run.hosts[late.rank];
    const auto ranks = std::ranges::count(run.per_rank, host, &RankSummary::host);
    text += fmt::format(
        " The host {} is slow: its {} ranks arrived at the collectives of an iteration {} later than those of {} "
        "(median of a host's ranks, mean over {}). That costs {}.{}.",
        host, ranks, seconds(1e-9 * late.behind_ns),
        run.hosts.size() == 2 ? "the other host" : "the mean of the other hosts",
        plural(run.host_lateness.iterations, "iteration", "iterations"),
        cost_text(late, rank_seconds_of_host(run, late)), chance_text(late));
    const auto latest =
        std::ranges::find(run.lateness.late, host, [&](const LateRank& rank) { return run.per_rank[rank.rank].host; });
    if (latest != run.lateness.late.end()) {
      text += fmt::format(" Rank {} is its latest.", run.per_rank[latest->rank].rank);
      const auto i = static_cast<std::size_t>(latest - run.lateness.late.begin());
      if (i < run.lateness_causes.size()) text += cause_text(run.lateness_causes[i], run.lateness.iterations);
    }
    text += " Check the clock frequency of this host and what else runs there.";
  }
  return text;
}

// Names a rank as slow only where the test of its lateness does.
std::string slow_ranks_text(const RunAnalysis& run) {
  constexpr std::size_t most_named = 4;
  const LatenessTest& test = run.lateness;
  if (!test.judged && test.late.empty()) return why_not_judged(test);
  std::string text = slow_hosts_text(run);
  std::size_t named = 0, further = 0;
  for (std::size_t i = 0; i < test.late.size(); ++i) {
    const LateRank& late = test.late[i];
    const RankSummary& rank = run.per_rank[late.rank];
    if (on_slow_host(run, rank)) continue;
    if (named == most_named) {
      ++further;
      continue;
    }
    text += fmt::format(
        " Rank {}{} arrived at the collectives of an iteration {} later than {} (mean over {}). That costs {}.{}",
        rank.rank, on_host(rank), seconds(1e-9 * late.behind_ns),
        run.per_rank.size() == 2 ? "the other rank" : "the mean of the other ranks",
        plural(test.iterations, "iteration", "iterations"), cost_text(late, rank_seconds_of_rank(run, late)),
        chance_text(late));
    text += named > 0 ? "."
            : test.block > 1
                ? fmt::format(" (Student's t of blocks of {}).", plural(test.block, "iteration", "iterations"))
                : fmt::format(" ({}, the whole run as one observation, because it is short for its autocorrelation).",
                              test.iterations < least_contrast_times ? "Cantelli's inequality" : "Student's t");
    ++named;
    if (i < run.lateness_causes.size()) text += cause_text(run.lateness_causes[i], test.iterations);
    if (const std::string why = run.causes ? lateness_cause_text(run.causes->ranks[late.rank]) : ""; !why.empty()) {
      text += fmt::format(" {}.", capitalised(why.substr(2)));
    }
  }
  if (text.empty()) {
    const std::string unknown = why_lateness_is_unknown(run);
    if (!unknown.empty()) text = " T" + unknown.substr(1) + ".";  // it begins with "the"
  }
  if (further > 0) text += fmt::format(" {} late as well.", plural(further, "further rank is", "further ranks are"));
  if (named > 0) {
    text += fmt::format(" Check what {} before {} collectives.", named == 1 ? "this rank does" : "these ranks do",
                        named == 1 ? "its" : "their");
  }
  return text;
}

// The ranks that are late beyond chance, the costliest first.
std::vector<FindingPlace> slow_places(const RunAnalysis& run) {
  std::vector<FindingPlace> places;
  for (const LateRank& late : run.lateness.late) {
    places.push_back({.name = fmt::format("Rank {} arrived last in {} of {}", run.per_rank[late.rank].rank,
                                          run.waits[late.rank].last_count,
                                          plural(run.arrivals[late.rank].collectives, "collective", "collectives")),
                      .rank = late.rank,
                      .time = run.arrivals[late.rank].worst});
  }
  return places;
}

void clock_findings(const RunAnalysis& run, std::vector<Finding>& out) {
  for (const WrongClock& clock : run.wrong_clocks) {
    out.push_back(
        {.severity = Severity::warning,
         .text = fmt::format(
             "The clock of {} is ahead of the other hosts' by {}, or its network is slower: its ranks seem to leave "
             "the collectives later by that time, which all ranks leave together. The traces state an error of {}. "
             "Waits and transfers between hosts are wrong by as much, and no rank is called slow for it. Align the "
             "clocks.",
             run.hosts[clock.host], seconds(1e-9 * clock.ahead_ns), seconds(1e-9 * run.clock_error_ns)),
         .kind = "clock"});
  }
}

void irregular_findings(const RunAnalysis& run, std::vector<Finding>& out) {
  for (const LateRank& late : run.irregularity.late) {
    const auto& steps_ns = run.lateness_table.step_ns;
    out.push_back(
        {.severity = late.share_of_step > 0.05 ? Severity::warning : Severity::info,
         .text = fmt::format(
             "Rank {}{} is irregular, not slow: its mean arrival is within chance of the others', but it varies more. "
             "Without it, the last rank would arrive {} earlier (mean over {}), {} of a step.{}. Check what interrupts "
             "this rank.",
             run.per_rank[late.rank].rank, on_host(run.per_rank[late.rank]), seconds(1e-9 * late.behind_ns),
             plural(run.irregularity.iterations, "iteration", "iterations"), percent(late.share_of_step),
             chance_text(late)),
         .cost_s = 1e-9 * late.share_of_step * std::accumulate(steps_ns.begin(), steps_ns.end(), 0.0),
         .kind = "irregular rank",
         .places = {{.rank = late.rank}}});
  }
}

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  clock_findings(run, out);
  irregular_findings(run, out);
  if (!any_timed(run.collectives)) return;
  std::int64_t waited_ns = 0, wall_ns = 0;
  for (std::size_t r = 0; r < run.per_rank.size(); ++r) {
    waited_ns += run.waits[r].waited_ns;
    wall_ns += run.per_rank[r].wall_ns;
  }
  std::string text = fmt::format(
      "On average, a rank waited {} ({} of its wall time) in collectives for the last rank to arrive.",
      duration(waited_ns / static_cast<std::int64_t>(run.per_rank.size())), percent(share(waited_ns, wall_ns)));
  const std::string ranks = slow_ranks_text(run);
  const bool named = !run.lateness.late.empty() || !run.host_lateness.late.empty();
  text = named ? ranks.substr(1) + " " + text : text + ranks;  // a slow rank or host comes first
  const auto costly = [](const LatenessTest& test) {
    return !test.late.empty() && test.late.front().share_of_step > 0.05;
  };
  const bool slow = costly(run.lateness) || costly(run.host_lateness);
  out.push_back({.severity = slow ? Severity::warning : Severity::info,
                 .text = std::move(text),
                 .cost_s = 1e-9 * static_cast<double>(waited_ns) / static_cast<double>(run.per_rank.size()),
                 .kind = !run.lateness.late.empty() ? "slow rank"
                         : named                    ? "slow host"
                                                    : "waiting",
                 .places = slow_places(run)});
}

void tables(const RunAnalysis& run, std::vector<Table>& out) {
  if (!any_timed(run.collectives)) return;
  Table table{.id = "waits",
              .title = "Who waits for whom",
              .columns = {"rank", "host", "waited for others", "made others wait", "last in"},
              .text_columns = 2,
              .note =
                  "In a collective, a rank waits until the last one arrives. \"Last in\" counts the collectives in "
                  "which the rank itself arrived last."};
  for (std::size_t r = 0; r < run.per_rank.size(); ++r) {
    const RankSummary& rank = run.per_rank[r];
    const RankWaits& waits = run.waits[r];
    table.rows.push_back({std::to_string(rank.rank), rank.host, with_share(waits.waited_ns, rank.wall_ns),
                          duration(waits.caused_ns), count(static_cast<double>(waits.last_count))});
  }
  out.push_back(std::move(table));
}

void figures(const RunAnalysis& run, Json& out) {
  const LatenessTest& test = run.lateness;
  if (test.iterations == 0) return;
  Json& lateness = out["lateness"] = {{"judged", test.judged},
                                      {"iterations", test.iterations},
                                      {"autocorrelation_time", test.autocorrelation_time},
                                      {"slow_ranks", Json::array()}};
  if (test.block > 1) lateness["block"] = test.block;
  if (run.host_lateness.judged) lateness["slow_hosts"] = Json::array();
  for (const LateRank& late : run.host_lateness.late) {
    lateness["slow_hosts"].push_back({{"host", run.hosts[late.rank]},
                                      {"late_ns", late.behind_ns},
                                      {"share_of_step", late.share_of_step},
                                      {"cost_rank_s", rank_seconds_of_host(run, late)},
                                      {"p", late.p}});
  }
  if (run.irregularity.judged) lateness["irregular_ranks"] = Json::array();
  for (const LateRank& late : run.irregularity.late) {
    lateness["irregular_ranks"].push_back({{"rank", run.per_rank[late.rank].rank},
                                           {"cost_ns", late.behind_ns},
                                           {"share_of_step", late.share_of_step},
                                           {"p", late.p}});
  }
  for (const WrongClock& clock : run.wrong_clocks) {
    lateness["wrong_clocks"].push_back({{"host", run.hosts[clock.host]}, {"ahead_ns", clock.ahead_ns}});
  }
  constexpr const char* shapes[] = {"steady", "since", "until", "periodic", "single"};
  for (std::size_t i = 0; i < test.late.size(); ++i) {
    const LateRank& late = test.late[i];
    Json& entry = lateness["slow_ranks"].emplace_back(Json{{"rank", run.per_rank[late.rank].rank},
                                                           {"late_ns", late.behind_ns},
                                                           {"share_of_step", late.share_of_step},
                                                           {"cost_rank_s", rank_seconds_of_rank(run, late)},
                                                           {"p", late.p}});
    if (i >= run.lateness_causes.size()) continue;
    const LatenessCause& cause = run.lateness_causes[i];
    entry["late_iterations"] = cause.pattern.affected;
    entry["pattern"] = shapes[static_cast<std::size_t>(cause.pattern.shape)];
    if (cause.pattern.shape != LatenessPattern::Shape::steady) entry["iteration"] = cause.pattern.at;
    if (cause.pattern.period > 1) entry["period"] = cause.pattern.period;
    if (cause.phase) {
      entry["phase"] = phase_name(cause.phase->phase);
      entry["phase_longer_ns"] = cause.phase->ns;
    }
  }
}

void rank_figures(const RunAnalysis& run, std::size_t r, Json& out) {
  if (!any_timed(run.collectives)) return;
  const RankWaits& waits = run.waits[r];
  out["waits"] = {{"waited_ns", waits.waited_ns},
                  {"caused_ns", waits.caused_ns},
                  {"last_count", waits.last_count},
                  {"blocked_ns", waits.blocked_ns}};
}

}  // namespace waiting_section

RunSection sections::waiting() {
  using namespace waiting_section;
  return {.findings = findings, .tables = tables, .figures = figures, .rank_figures = rank_figures};
}

}  // namespace paceline::analysis
