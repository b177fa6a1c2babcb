// SPDX-License-Identifier: Apache-2.0
// How often the report names a rank, a phase or a change in generated runs whose truth is known.
//
//   stragglers [--runs N] [--slow-runs N] [--only ranks,hosts,loader,links,steps] [--phi X] [--iterations N]
//              [--collectives N] [--cells]
//
// Balanced runs should be named in at most 5 % (6.5 % with the error of 1,000 runs). A rank that is slowed by six
// standard errors of its mean lateness should be named in 97 %, and no other one. `--cells` prints each cell beside the
// summary over those that are alike.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>

#include "analysis/communication/lateness_causes.h"
#include "analysis/communication/lateness_hosts.h"
#include "analysis/communication/link_times.h"
#include "analysis/statistics/step_changes.h"
#include "tests/unit/analysis/simulated_collectives.h"
#include "tests/unit/analysis/simulated_steps.h"

namespace {

using namespace paceline::analysis;
using namespace paceline::analysis::simulation;

struct Settings {
  std::size_t runs = 1000, slow_runs = 200;
  bool cells = false;
  double phi = -1;                              // only this one, if it is given
  std::size_t iterations = 0, collectives = 0;  // likewise
  bool wants(double other_phi, std::size_t other_iterations) const {
    return (phi < 0 || phi == other_phi) && (iterations == 0 || iterations == other_iterations);
  }
};

// Shares of the runs in %.
struct Rates {
  std::size_t runs = 0, judged = 0, named = 0;
  std::size_t slow_judged = 0, found = 0, wrong = 0;
  static double percent(std::size_t part, std::size_t all) {
    return all == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(all);
  }
};

// The worst and best over several cells.
struct Summary {
  std::size_t cells = 0, judged_cells = 0;
  double least_judged = 100, most_judged = 0, most_named = 0, least_found = 100, most_wrong = 0;
  void add(const Rates& rates) {
    ++cells;
    const double judged = Rates::percent(rates.judged, rates.runs);
    least_judged = std::min(least_judged, judged), most_judged = std::max(most_judged, judged);
    most_named = std::max(most_named, Rates::percent(rates.named, rates.runs));
    if (2 * rates.slow_judged < rates.found + rates.wrong || rates.slow_judged < 30) return;  // too few to say
    ++judged_cells;
    least_found = std::min(least_found, Rates::percent(rates.found, rates.slow_judged));
    most_wrong = std::max(most_wrong, Rates::percent(rates.wrong, rates.slow_judged));
  }
  void print(const std::string& what) const {
    std::printf("%-44s %3zu cells: judged %5.1f to %5.1f %%, balanced and named at most %4.1f %%", what.c_str(), cells,
                least_judged, most_judged, most_named);
    if (judged_cells > 0) {
      std::printf("; slow (%zu cells): found at least %5.1f %%, another named at most %4.1f %%", judged_cells,
                  least_found, most_wrong);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
};

double mean_lateness(const LatenessTable& table, std::size_t rank) {
  double sum = 0;
  for (std::size_t i = 0; i < table.iterations(); ++i) sum += table.late_ns[i * table.ranks + rank];
  return sum / static_cast<double>(table.iterations());
}

double mean_step(const LatenessTable& table) {
  return std::accumulate(table.step_ns.begin(), table.step_ns.end(), 0.0) / static_cast<double>(table.iterations());
}

// The delay that makes a rank late by six standard errors. Part of a delay moves the median of the ranks and not the
// lateness. A delay must also cost clearly more than the least cost that is ever named, a share of the step.
double delay_of(double standard_error, std::size_t ranks, double step = 1) {
  const auto n = static_cast<double>(ranks);
  return std::max(6 * standard_error * n / (n - 1), 1.2 * least_lateness_cost * step + 4 * standard_error);
}

// `table_of` generates one run of a job; the column `slow` of its table has the delay.
template <typename TableOf>
Rates rates_of(Job job, std::size_t runs, std::size_t slow_runs, std::uint64_t seed, std::size_t slow,
               const TableOf& table_of) {
  Random random(seed);
  Rates rates{.runs = runs};
  double sum = 0, squares = 0, step = 0;
  std::size_t columns = 2;
  for (std::size_t i = 0; i < runs; ++i) {
    const LatenessTable table = table_of(job, random);
    const double late = mean_lateness(table, 0) / work_ns;
    sum += late, squares += late * late, step += mean_step(table) / work_ns;
    columns = table.ranks;
    const LatenessTest test = test_lateness(table, 0);
    rates.judged += test.judged;
    rates.named += !test.late.empty();
  }
  const auto n = static_cast<double>(runs);
  job.delay = delay_of(std::sqrt(std::max(0.0, squares / n - sum / n * sum / n)), columns, step / n);
  if (rates.judged * 20 < runs) slow_runs = 0;
  for (std::size_t i = 0; i < slow_runs; ++i) {
    const LatenessTest test = test_lateness(table_of(job, random), 0);
    if (!test.judged) continue;
    ++rates.slow_judged;
    const bool others = std::ranges::any_of(test.late, [&](const LateRank& late) { return late.rank != slow; });
    rates.found += test.late.size() == 1 && !others;
    rates.wrong += others;
  }
  return rates;
}

void print_cell(double phi, std::size_t iterations, std::size_t collectives, bool exponential, std::size_t columns,
                const char* what, const Rates& rates) {
  std::printf(
      "  phi %.1f, %3zu iterations, %2zu collectives, %s, %2zu %s: judged %5.1f %%, named %4.1f %%; slow judged %zu, "
      "found %zu, wrong %zu\n",
      phi, iterations, collectives, exponential ? "exponential" : "normal     ", columns, what,
      Rates::percent(rates.judged, rates.runs), Rates::percent(rates.named, rates.runs), rates.slow_judged, rates.found,
      rates.wrong);
  std::fflush(stdout);
}

void ranks_part(const Settings& settings) {
  std::printf("Ranks: 2 to 64, normal and exponential noise of 5 %% of the step, 1 and 62 collectives a step\n");
  for (const double phi : {0.0, 0.5, 0.9}) {
    for (const std::size_t iterations : {20U, 50U, 100U, 200U, 500U}) {
      if (!settings.wants(phi, iterations)) continue;
      Summary summary;
      for (const std::size_t collectives : {1U, 62U}) {
        if (settings.collectives != 0 && settings.collectives != collectives) continue;
        for (const bool exponential : {false, true}) {
          for (const std::size_t ranks : {2U, 4U, 8U, 16U, 32U, 64U}) {
            const std::size_t seed = static_cast<std::size_t>(100 * phi) + 1000 * iterations + 2 * collectives +
                                     (exponential ? 1 : 0) + ranks;
            const Job job{.ranks = ranks,
                          .iterations = iterations,
                          .collectives = collectives,
                          .exponential = exponential,
                          .autocorrelation = phi};
            const Rates rates = rates_of(job, settings.runs, settings.slow_runs, seed, job.slow_rank, simulate);
            summary.add(rates);
            if (settings.cells) print_cell(phi, iterations, collectives, exponential, ranks, "ranks", rates);
          }
        }
      }
      summary.print("phi " + std::to_string(phi).substr(0, 3) + ", " + std::to_string(iterations) + " iterations");
    }
  }
}

// All ranks of one host take longer.
void hosts_part(const Settings& settings) {
  std::printf("Hosts: 2, 4 and 8 of 2 and 8 ranks each, 1 collective a step; the slow host is named\n");
  std::uint64_t seed = 5000;
  for (const double phi : {0.0, 0.5, 0.9}) {
    for (const bool exponential : {false, true}) {
      for (const std::size_t hosts : {2U, 4U, 8U}) {
        for (const std::size_t ranks_of_host : {2U, 8U}) {
          const std::size_t iterations = phi > 0.5 ? 500 : 200;
          ++seed;
          if (!settings.wants(phi, iterations)) continue;
          Job job{.ranks = hosts * ranks_of_host,
                  .iterations = iterations,
                  .exponential = exponential,
                  .autocorrelation = phi,
                  .slow_rank = ranks_of_host,
                  .slow_ranks = ranks_of_host};
          std::vector<std::uint32_t> host_of_rank;
          for (std::size_t r = 0; r < job.ranks; ++r) {
            host_of_rank.push_back(static_cast<std::uint32_t>(r / ranks_of_host));
          }
          const Rates rates = rates_of(
              job, settings.runs, settings.slow_runs, seed, 1,
              [&](const Job& each, Random& random) { return lateness_of_hosts(simulate(each, random), host_of_rank); });
          print_cell(phi, iterations, 1, exponential, hosts, ranks_of_host == 2 ? "hosts of 2" : "hosts of 8", rates);
        }
      }
    }
  }
}

// One rank's preprocess takes longer. The noise is shared by three phases.
void loader_part(const Settings& settings) {
  std::printf("A slow loader, 1 collective a step: preprocess is named as the cause\n");
  std::uint64_t seed = 1000;
  for (const double phi : {0.0, 0.5}) {
    for (const bool exponential : {false, true}) {
      for (const std::size_t ranks : {2U, 4U, 16U}) {
        constexpr std::size_t iterations = 200, first = iterations / 10;
        constexpr std::array phases = {Phase::preprocess, Phase::forward, Phase::backward};
        Random random(++seed);
        const double error = 0.05 * std::sqrt((1 + phi) / (1 - phi) / (iterations - first));
        const double delay = delay_of(error, ranks);
        std::size_t judged = 0, named = 0, right = 0;
        for (std::size_t run = 0; run < settings.slow_runs; ++run) {
          std::vector<Noise> noises;
          for (std::size_t i = 0; i < ranks * phases.size(); ++i) noises.emplace_back(phi, exponential, random);
          std::vector<std::vector<Iteration>> of_ranks(ranks);
          LatenessTable table;
          std::vector<double> arrivals(ranks), waits(ranks);
          for (std::size_t i = first; i < iterations; ++i) {
            for (std::size_t r = 0; r < ranks; ++r) {
              Iteration& iteration = of_ranks[r].emplace_back();
              iteration.number = static_cast<std::int64_t>(i);
              arrivals[r] = 0;
              for (std::size_t p = 0; p < phases.size(); ++p) {
                const double noise = 0.05 / std::sqrt(3.0) * noises[r * phases.size() + p].next(random);
                const double slow = r == 1 && p == 0 ? delay : 0;
                const double ns = work_ns * (1.0 / 3 + noise + slow);
                iteration.phase_ns[static_cast<std::size_t>(phases[p])] = static_cast<std::int64_t>(ns);
                arrivals[r] += ns;
              }
            }
            const double last = *std::ranges::max_element(arrivals);
            for (std::size_t r = 0; r < ranks; ++r) waits[r] = last - arrivals[r];
            LatenessRow row;
            row.step_ns = last;
            add_collective(row, arrivals, waits);
            add_iteration(table, static_cast<std::int64_t>(i), row);
          }
          const std::vector<std::span<const Iteration>> spans(of_ranks.begin(), of_ranks.end());
          const LatenessTest test = test_lateness(table, 0);
          judged += test.judged;
          if (test.late.size() != 1 || test.late.front().rank != 1) continue;
          ++named;
          const auto cause = slow_phase(table, spans, test.late.front());
          right += cause && cause->phase == Phase::preprocess;
        }
        std::printf(
            "  phi %.1f, %s, %2zu ranks: judged %zu of %zu, the rank alone is named in %zu, with its loader in %zu\n",
            phi, exponential ? "exponential" : "normal     ", ranks, judged, settings.slow_runs, named, right);
        std::fflush(stdout);
      }
    }
  }
}

// A ring of messages between hosts; one link takes longer.
void links_part(const Settings& settings) {
  std::printf("Links: a ring of messages, 200 iterations; a throttled link is named\n");
  std::uint64_t seed = 3000;
  for (const double phi : {0.0, 0.5}) {
    for (const bool exponential : {false, true}) {
      for (const std::size_t ranks : {4U, 16U}) {
        Job job{.ranks = ranks, .iterations = 200, .exponential = exponential, .autocorrelation = phi};
        Random random(++seed);
        const auto test_of = [&] {
          const SimulatedRing ring(job, random);
          return link_times(ring.messages, ring.spans(), ring.ends, 0).at(0).test;
        };
        std::size_t judged = 0, named = 0, found = 0, wrong = 0;
        for (std::size_t run = 0; run < settings.runs; ++run) {
          const LatenessTest test = test_of();
          judged += test.judged;
          named += !test.late.empty();
        }
        // The standard error of the mean of 180 iterations.
        job.delay = delay_of(0.05 * std::sqrt((1 + phi) / (1 - phi) / 180), ranks);
        for (std::size_t run = 0; run < settings.slow_runs; ++run) {
          const LatenessTest test = test_of();
          const auto is_slow = [&](const LateRank& late) { return late.rank == job.slow_rank; };
          found += test.late.size() == 1 && is_slow(test.late[0]);
          wrong += !std::ranges::all_of(test.late, is_slow);
        }
        std::printf(
            "  phi %.1f, %s, %2zu links: judged %5.1f %%, balanced and named %4.1f %%; throttled: found %zu, "
            "another named %zu of %zu\n",
            phi, exponential ? "exponential" : "normal     ", ranks, Rates::percent(judged, settings.runs),
            Rates::percent(named, settings.runs), found, wrong, settings.slow_runs);
        std::fflush(stdout);
      }
    }
  }
}

// Unchanging step times, a jump and a drift.
void steps_part(const Settings& settings) {
  std::printf("Step times: unchanging; a jump and a drift of six and twelve standard errors\n");
  std::uint64_t seed = 2000;
  for (const double phi : {0.0, 0.5, 0.9}) {
    for (const bool exponential : {false, true}) {
      for (const std::size_t iterations : {20U, 50U, 100U, 200U, 500U, 1000U}) {
        if (!settings.wants(phi, iterations)) continue;
        const Job job{.iterations = iterations, .exponential = exponential, .autocorrelation = phi};
        Random random(++seed);
        std::size_t judged = 0, named = 0;
        for (std::size_t run = 0; run < settings.runs; ++run) {
          const StepChangeTest test = test_step_change(simulate_steps(job, 0, 0, random), 0.02);
          judged += test.judged;
          named += test.change.has_value();
        }
        std::printf("  phi %.1f, %s, %4zu iterations: judged %5.1f %%, named %4.1f %%", phi,
                    exponential ? "exponential" : "normal     ", iterations, Rates::percent(judged, settings.runs),
                    Rates::percent(named, settings.runs));
        // Standard errors of the difference between two and three fifths of the run, and of a line's rise.
        const double step_error = job.noise * std::sqrt((1 + phi) / (1 - phi) / static_cast<double>(iterations));
        const double jump_error = step_error * std::sqrt(1 / 0.4 + 1 / 0.6), drift_error = step_error * std::sqrt(12.0);
        for (const double errors : {6.0, 12.0}) {
          if (judged * 20 < settings.runs) break;
          for (const bool is_jump : {true, false}) {
            const double size = std::max(errors * (is_jump ? jump_error : drift_error), 0.04);
            using Kind = StepChange::Kind;
            std::size_t changed = 0, found = 0, right = 0, wrong = 0;
            for (std::size_t run = 0; run < settings.slow_runs; ++run) {
              const StepChangeTest test =
                  test_step_change(simulate_steps(job, is_jump ? size : 0, is_jump ? 0 : size, random), 0.02);
              changed += test.judged;
              found += test.change.has_value();
              right += test.change && test.change->kind == (is_jump ? Kind::jump : Kind::drift);
              wrong += test.change && test.change->kind == (is_jump ? Kind::drift : Kind::jump);
            }
            std::printf("; %s %.0f: found %.1f, kind right %.1f, wrong %.1f %% of %zu", is_jump ? "jump" : "drift",
                        errors, Rates::percent(found, changed), Rates::percent(right, changed),
                        Rates::percent(wrong, changed), changed);
          }
        }
        std::printf("\n");
        std::fflush(stdout);
      }
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  Settings settings;
  std::string only;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--cells") {
      settings.cells = true;
    } else if (i + 1 < count && name == "--runs") {
      settings.runs = std::strtoul(arguments[++i], nullptr, 10);
    } else if (i + 1 < count && name == "--slow-runs") {
      settings.slow_runs = std::strtoul(arguments[++i], nullptr, 10);
    } else if (i + 1 < count && name == "--phi") {
      settings.phi = std::strtod(arguments[++i], nullptr);
    } else if (i + 1 < count && name == "--iterations") {
      settings.iterations = std::strtoul(arguments[++i], nullptr, 10);
    } else if (i + 1 < count && name == "--collectives") {
      settings.collectives = std::strtoul(arguments[++i], nullptr, 10);
    } else if (i + 1 < count && name == "--only") {
      only = arguments[++i];
    } else {
      std::fprintf(stderr,
                   "stragglers: %s: unknown, or its value is absent. The options are at the top of stragglers.cpp\n",
                   name.c_str());
      return 2;
    }
  }
  const auto wanted = [&](const char* part) { return only.empty() || only.find(part) != std::string::npos; };
  if (wanted("ranks")) ranks_part(settings);
  if (wanted("hosts")) hosts_part(settings);
  if (wanted("loader")) loader_part(settings);
  if (wanted("links")) links_part(settings);
  if (wanted("steps")) steps_part(settings);
  return 0;
}
