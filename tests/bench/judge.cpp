// SPDX-License-Identifier: Apache-2.0
// Judges the tests behind a report's accusations in generated jobs whose truth is known: how often they accuse anybody
// of anything in sound runs, and whether they find the slow ranks. The jobs come from judge/jobs.h, never from the
// generator that tunes the tests.
//
//   judge [--runs N] [--kind NAME] [--ranks N] [--iterations N] [--seed N] [--cells] [--level] [--watch]
//
// A sound run accuses somebody in at most 5 % of the judged runs (by kind: + 2 standard errors; in each cell: + 3.5).
// Of the runs with at least 40 autocorrelation times, 90 % are judged. A rank that is late by six standard errors of
// its mean lateness is named with its pattern in 95 % of the judged runs (90 % for 64 ranks and 50 iterations). Of a
// rank that is as late in every 9th to 50th iteration, the share of the named ones with the right period is printed.
// Prints one row for each kind, with the worst of its cells; --cells prints each cell, --level simulates sound runs
// only. With --watch, the jobs are tested as `paceline watch` does while they run, and who is named at any time counts;
// at the end, slow ranks are to be named. (Of waves as long as a fifth of the job and more, who is named at the end
// counts: until then, a job whose rank is in such a wave is the same as one whose rank is slow.) The exit status is 1
// if a limit is broken. (Where a wave or a rotation makes the mean more certain than as many independent iterations
// would, the standard error is that of independent ones.)
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>

#include "analysis/communication/accusations.h"
#include "analysis/communication/lateness_causes.h"
#include "analysis/watch/lateness_looks.h"
#include "tests/bench/judge/jobs.h"

namespace {

using namespace paceline::analysis;
using judge::Engine;
using judge::Job;
using judge::Kind;
using judge::KindFacts;
using judge::Slow;

constexpr double step_ns = 1e8, noise_ns = 2e7;

// What the report computes of a run: one blocking allreduce in each iteration, the first tenth left out as warm-up.
struct Run {
  std::vector<Kind> kinds;  // of the ranks
  LatenessTable table;
  LatenessTest late, irregular;
  StepChangeTest change;

  Run(const Job& job, Engine& engine, bool watch = false) {
    kinds = judge::kinds_of(job, engine);
    const std::vector<LatenessRow> rows = rows_of(job, work_of(job, kinds, engine));
    for (std::size_t i = job.iterations / 10; i < job.iterations; ++i) {
      add_iteration(table, static_cast<std::int64_t>(i), rows[i]);
    }
    if (watch) {
      look_at(rows, job);
      return;
    }
    const double mean =
        std::accumulate(table.step_ns.begin(), table.step_ns.end(), 0.0) / static_cast<double>(table.iterations());
    change = test_step_change(table.step_ns, 0.02 * mean);
    late = test_lateness(table, 0);
    irregular = test_irregularity(table, late);
    correct_for_all(std::array{Accuser{.late = &late, .weight = slow_ranks_weight}, Accuser{.late = &irregular},
                               Accuser{.change = &change}});
  }

 private:
  static std::vector<LatenessRow> rows_of(const Job& job, const std::vector<double>& work) {
    std::vector<LatenessRow> rows(job.iterations);
    std::vector<double> arrivals(job.ranks), waits(job.ranks);
    for (std::size_t i = 0; i < job.iterations; ++i) {
      for (std::size_t r = 0; r < job.ranks; ++r) arrivals[r] = step_ns + noise_ns * work[i * job.ranks + r];
      const double last = *std::ranges::max_element(arrivals);
      for (std::size_t r = 0; r < job.ranks; ++r) waits[r] = last - arrivals[r];
      rows[i].step_ns = last;
      add_collective(rows[i], arrivals, waits);
    }
    return rows;
  }

  // `late` has who was named at any time, and whether anything was judged.
  void look_at(const std::vector<LatenessRow>& rows, const Job& job) {
    LatenessLooks looks;
    for (std::size_t finished = 2; finished <= rows.size(); ++finished) {
      if (!looks.due(finished) && finished < rows.size()) continue;
      LatenessTable seen;
      seen.ranks = job.ranks;
      for (std::size_t i = LatenessLooks::first(finished, job.ranks); i < finished; ++i) {
        add_iteration(seen, static_cast<std::int64_t>(i), rows[i]);
      }
      const LatenessTest look = looks.look(seen, finished, finished == rows.size());
      late.judged = late.judged || look.judged;
      if (job.kind == Kind::slow_period) late.late.clear();
      for (const LateRank& of : look.late) {
        if (std::ranges::find(late.late, of.rank, &LateRank::rank) == late.late.end()) late.late.push_back(of);
      }
    }
  }
};

double share(std::size_t part, std::size_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

// 5 % and some standard errors of the share that `runs` runs show.
double limit(std::size_t runs, double errors) {
  return 0.05 + errors * std::sqrt(0.05 * 0.95 / static_cast<double>(std::max<std::size_t>(runs, 1)));
}

struct Counts {
  std::size_t runs = 0, judged = 0, slow = 0, irregular = 0, changed = 0, accused = 0;
  std::size_t short_accused = 0;  // in runs that were not judged
  void add(const Counts& other) {
    short_accused += other.short_accused;
    runs += other.runs, judged += other.judged, slow += other.slow, irregular += other.irregular;
    changed += other.changed, accused += other.accused;
  }
};

struct Power {
  // Runs; right: all slow ranks are named, the last one with its pattern. found: slow ranks that are named.
  std::size_t judged = 0, right = 0, named = 0, another = 0, found = 0;
};

// How uncertain the mean lateness of a rank is beside that of the others without the noisy one, by the rank's kind of
// noise, from sound runs. In standard deviations.
class ContrastErrors {
 public:
  void add(const Run& run, Kind kind) {
    const LatenessTable& table = run.table;
    const std::size_t first = kind == Kind::unequal && table.ranks > 2 ? 1 : 0;  // rank 0 has the noise
    const auto n = static_cast<double>(table.iterations()), others = static_cast<double>(table.ranks - 1 - first);
    std::vector<double> sums(table.ranks), squares(table.ranks);
    for (std::size_t i = 0; i < table.iterations(); ++i) {
      const std::span late = std::span(table.late_ns).subspan(i * table.ranks, table.ranks);
      const double all = std::accumulate(late.begin() + static_cast<std::ptrdiff_t>(first), late.end(), 0.0);
      for (std::size_t r = first; r < table.ranks; ++r) {
        const double value = (late[r] - (all - late[r]) / others) / noise_ns;
        sums[r] += value, squares[r] += value * value;
      }
    }
    for (std::size_t r = first; r < table.ranks; ++r) {
      Sums& of = of_kind_[static_cast<std::size_t>(run.kinds[r])];
      const double mean = sums[r] / n;
      ++of.count, of.squares += mean * mean, of.independent += (squares[r] / n - mean * mean) / n;
    }
  }
  double of(std::size_t kind) const {
    const Sums& sums = of_kind_[kind];
    return sums.count == 0 ? 0 : std::sqrt(std::max(sums.squares, sums.independent) / sums.count);
  }

 private:
  struct Sums {
    double count = 0, squares = 0, independent = 0;  // squares: of the means, whose true value is 0
  };
  std::array<Sums, judge::kinds.size()> of_kind_;
};

bool right_pattern(const Run& run, const Job& job) {
  const LatenessPattern pattern = lateness_pattern(run.table, static_cast<std::uint32_t>(run.table.ranks - 1));
  if (job.slow != Slow::every_third && job.slow != Slow::rarely) {
    return pattern.shape == LatenessPattern::Shape::steady;
  }
  return pattern.shape == LatenessPattern::Shape::periodic && pattern.period == job.period;
}

Power power_of(Job job, std::size_t runs, Engine& engine, bool watch) {
  Power power;
  for (std::size_t i = 0; i < runs; ++i) {
    if (job.slow == Slow::rarely) job.period = 9 + engine() % 42;
    const Run run(job, engine, watch);
    if (!run.late.judged) continue;
    ++power.judged;
    const std::size_t slow = job.slow == Slow::two ? 2 : 1;
    const auto is_slow = [&](const LateRank& late) { return late.rank + slow >= job.ranks; };
    const auto found = static_cast<std::size_t>(std::ranges::count_if(run.late.late, is_slow));
    power.named += found == slow, power.found += found;
    power.another += run.late.late.size() > found;
    power.right += found == slow && right_pattern(run, job);
  }
  return power;
}

struct Settings {
  std::size_t runs = 400, ranks = 0, iterations = 0, seed = 0;
  std::string kind;
  bool cells = false, level = false, watch = false;
};

bool judge_kind(const KindFacts& facts, const Settings& settings) {
  constexpr const char* slow_names[] = {"", "constant", "every third step", "two at once", "rarely"};
  Counts all;
  bool good = true;
  double worst_cell = 0, least_judged = 1, worst_power[4] = {1, 1, 1, 1};
  Power rarely;
  for (const std::size_t ranks : {2U, 4U, 16U, 64U}) {
    for (const std::size_t iterations : {50U, 200U, 500U, 1000U}) {
      if (settings.ranks != 0 && settings.ranks != ranks) continue;
      if (settings.iterations != 0 && settings.iterations != iterations) continue;
      Engine engine(1'000'000'007 * settings.seed + 1000003 * static_cast<std::size_t>(facts.kind) + 1009 * ranks +
                    iterations);
      Job job{.kind = facts.kind, .ranks = ranks, .iterations = iterations};
      Counts cell{.runs = settings.runs};
      ContrastErrors errors;
      for (std::size_t i = 0; i < settings.runs; ++i) {
        const Run run(job, engine, settings.watch);
        errors.add(run, facts.kind);
        if (!run.late.judged) {
          cell.short_accused += !run.late.late.empty();
          continue;
        }
        const bool slow = !run.late.late.empty(), changed = run.change.change.has_value();
        const bool irregular = !run.irregular.late.empty();
        ++cell.judged, cell.slow += slow, cell.irregular += irregular, cell.changed += changed;
        cell.accused += slow || changed || (facts.alike && irregular);
      }
      const double judged = share(cell.judged, cell.runs), accused = share(cell.accused, cell.judged);
      if (settings.cells) {
        std::printf(
            "  %-12s %2zu ranks %4zu iterations: judged %5.1f %%; accused %4.1f %% of them (slow %.1f, irregular "
            "%.1f, change %.1f)",
            facts.name.data(), ranks, iterations, 100 * judged, 100 * accused, 100 * share(cell.slow, cell.judged),
            100 * share(cell.irregular, cell.judged), 100 * share(cell.changed, cell.judged));
      }
      all.add(cell);
      worst_cell = std::max(worst_cell, accused);
      good = good && (cell.judged == 0 || accused <= limit(cell.judged, 3.5));
      const double times = 0.9 * static_cast<double>(iterations) / std::max(facts.autocorrelation_time, 1.0);
      if (facts.autocorrelation_time > 0 && times >= 40) least_judged = std::min(least_judged, judged);
      for (const Slow slow : {Slow::constant, Slow::every_third, Slow::two, Slow::rarely}) {
        const std::size_t used = settings.runs / 2;
        const bool small = 10 * cell.judged < cell.runs;
        if (!facts.power || settings.level || small || (slow == Slow::two && ranks < 8)) continue;
        if (slow == Slow::rarely && iterations < 500) continue;  // five repeats of every period
        job.slow = slow;
        job.period = 3;
        for (std::size_t k = 0; k < job.delays.size(); ++k) job.delays[k] = 6 * errors.of(k);
        const Power power = power_of(job, used, engine, settings.watch);
        const double right = share(power.right, power.judged);
        if (settings.cells) {
          std::printf("; %s %.1f %% (named %.1f, another %.1f)", slow_names[static_cast<std::size_t>(slow)],
                      100 * right, 100 * share(power.named, power.judged), 100 * share(power.another, power.judged));
          if (slow == Slow::two) std::printf(", each of them %.1f %%", 100 * share(power.found, 2 * power.judged));
        }
        if (slow == Slow::rarely) {
          rarely.named += power.named, rarely.right += power.right;
          continue;
        }
        if (power.judged < 30) continue;
        const bool few = ranks == 64 && iterations == 50;
        // 64 ranks and 50 iterations may have 5 % less.
        auto& worst = worst_power[static_cast<std::size_t>(slow)];
        worst = std::min(worst, right + (few ? 0.05 : 0));
      }
      if (settings.cells) std::printf("\n");
      std::fflush(stdout);
    }
  }
  const double accused = share(all.accused, all.judged);
  good = good && accused <= limit(all.judged, 2) && least_judged >= 0.9;
  std::printf("%-12s | %5.1f %% | %4.1f %% | %4.1f %% | ", facts.name.data(), 100 * share(all.judged, all.runs),
              100 * accused, 100 * worst_cell);
  if (facts.autocorrelation_time > 0) std::printf("%5.1f %%", 100 * least_judged);
  for (std::size_t s = 1; s < 4 && facts.power; ++s) {
    std::printf(" | %5.1f %%", 100 * worst_power[s]);
    good = good && worst_power[s] >= 0.95;
  }
  if (rarely.named > 0) std::printf(" | %5.1f %%", 100 * share(rarely.right, rarely.named));
  if (all.judged < all.runs) {
    std::printf(" | %.1f %% of %zu", 100 * share(all.short_accused, all.runs - all.judged), all.runs - all.judged);
  }
  if (!facts.alike) std::printf(" | irregular %.1f %%", 100 * share(all.irregular, all.judged));
  std::printf("%s\n", good ? "" : " | LIMIT BROKEN");
  std::fflush(stdout);
  return good;
}

}  // namespace

int main(int count, char** arguments) {
  Settings settings;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    const auto number = [&] { return static_cast<std::size_t>(std::strtoul(arguments[++i], nullptr, 10)); };
    if (name == "--cells") {
      settings.cells = true;
    } else if (name == "--level") {
      settings.level = true;
    } else if (name == "--watch") {
      settings.watch = true;
    } else if (i + 1 < count && name == "--runs") {
      settings.runs = number();
    } else if (i + 1 < count && name == "--ranks") {
      settings.ranks = number();
    } else if (i + 1 < count && name == "--iterations") {
      settings.iterations = number();
    } else if (i + 1 < count && name == "--seed") {
      settings.seed = number();
    } else if (i + 1 < count && name == "--kind") {
      settings.kind = arguments[++i];
    } else {
      std::fprintf(stderr, "judge: %s: unknown, or its value is absent. The options are at the top of judge.cpp\n",
                   name.c_str());
      return 2;
    }
  }
  std::printf(
      "%-12s | judged | accused | in the worst cell | judged of 40 τ | constant | every third | two | "
      "of named: rarely | not judged, accused\n",
      "noise");
  bool good = true;
  for (const KindFacts& facts : judge::kinds) {
    if (settings.kind.empty() || facts.name.starts_with(settings.kind)) good = judge_kind(facts, settings) && good;
  }
  return good ? 0 : 1;
}
