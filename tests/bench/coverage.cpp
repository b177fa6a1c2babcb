// SPDX-License-Identifier: Apache-2.0
// How often the intervals that a scaling report prints as 95 % hold the truth. Tables and traces are drawn from
// programs whose scaling is known; each interval is counted as shown or not and as holding the truth or not.
//
//   coverage [--cases N] [--only repeats,lengths,steps]
//
// The target is 93 to 97 % of the intervals shown, and more only where a bound (s, σ, κ ≥ 0) cuts them.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "analysis/scaling/scaling.h"

namespace {

using namespace paceline::analysis;

constexpr int rank_counts[] = {1, 2, 4, 8};

// One true program: 100 s on one rank, of which a share is serial, and coherency costs that grow with N (N − 1).
struct Truth {
  double serial = 0.1, kappa = 0;
  double time(double n) const { return 100 * (serial + (1 - serial) / n + kappa * (n - 1)); }
  double speedup(double n) const { return time(1) / time(n); }
};

struct Count {
  int shown = 0, held = 0;
  void add(const std::optional<Interval>& interval, double truth) {
    if (!interval) return;
    ++shown;
    held += interval->low <= truth && truth <= interval->high;
  }
};

void print(const std::string& what, const char* figure, const Count& count, int cases) {
  if (count.shown == 0) {
    std::printf("  %-46s %-16s no interval\n", what.c_str(), figure);
  } else {
    std::printf("  %-46s %-16s %5.1f %%   (shown in %5.1f %% of %d)\n", what.c_str(), figure,
                100.0 * count.held / count.shown, 100.0 * count.shown / cases, cases);
  }
  std::fflush(stdout);
}

ScalingRun row(int ranks, double epochs, double images, double seconds) {
  ScalingRun run;
  run.ranks = ranks;
  run.epochs = epochs;
  run.images = images;
  run.seconds = seconds;
  return run;
}

const ScalingPoint& point_of(const Scaling& scaling, int ranks) {
  for (const auto& point : scaling.points) {
    if (point.ranks == ranks) return point;
  }
  std::abort();
}

// Exponential noise of mean 0 and variance 1, with the order of the normal noise that it is made from.
double skewed(double normal) { return -std::log(0.5 * std::erfc(normal / std::sqrt(2.0))) - 1; }

// Uneven: the noise of N ranks is √N times that of one.
enum class Noise { normal, uneven, exponential };

// Repeats of 1, 2, 4 and 8 ranks.
void repeats(int cases, int repeat, Truth truth, Noise kind) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  Count speedup, efficiency, karp, serial, sigma, kappa, predicted;
  for (int c = 0; c < cases; ++c) {
    std::vector<ScalingRun> runs;
    for (const int n : rank_counts) {
      const double spread = 0.01 * (kind == Noise::uneven ? std::sqrt(n) : 1);
      for (int i = 0; i < repeat; ++i) {
        const double draw = normal(random), noise = kind == Noise::exponential ? skewed(draw) : draw;
        runs.push_back(row(n, 1, 1000, truth.time(n) * std::exp(spread * noise)));
      }
    }
    const Scaling scaling = scaling_of(runs);
    const auto& point = point_of(scaling, 8);
    speedup.add(point.speedup_ci95, truth.speedup(8));
    efficiency.add(point.efficiency_ci95, truth.speedup(8) / 8);
    karp.add(point.karp_flatt_ci95, karp_flatt(truth.speedup(8), 8));
    if (scaling.fits.empty()) continue;
    const auto& fit = scaling.fits.front();
    if (truth.kappa == 0) serial.add(fit.ci95, truth.serial);
    // N/S − 1 = s (N − 1) + κ N (N − 1) is Gunther's law itself.
    sigma.add(fit.sigma_ci95, truth.serial);
    kappa.add(fit.kappa_ci95, truth.kappa);
    for (const auto& prediction : fit.choice.predictions) {
      if (prediction.ranks == 16) predicted.add(prediction.ci95, truth.speedup(16));
    }
  }
  char what[96];
  std::snprintf(what, sizeof what, "%d repeats, s = %.2f, kappa = %.3f%s", repeat, truth.serial, truth.kappa,
                kind == Noise::uneven        ? ", uneven noise"
                : kind == Noise::exponential ? ", exponential noise"
                                             : "");
  print(what, "S(8)", speedup, cases);
  print(what, "E(8)", efficiency, cases);
  print(what, "Karp-Flatt e(8)", karp, cases);
  if (truth.kappa == 0) print(what, "Amdahl s", serial, cases);
  print(what, "USL sigma", sigma, cases);
  print(what, "USL kappa", kappa, cases);
  print(what, "predicted S(16)", predicted, cases);
}

// Runs of two lengths on 1 and 2 ranks, with 1 % noise.
void lengths(int cases, int repeat, double fixed) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal;
  Count fixed_seconds, per_epoch, limit;
  for (int c = 0; c < cases; ++c) {
    std::vector<ScalingRun> runs;
    for (const int n : {1, 2}) {
      for (const double epochs : {4.0, 50.0}) {
        for (int i = 0; i < repeat; ++i) {
          const double seconds = fixed * n + epochs * 48 / std::pow(n, 0.9);
          runs.push_back(row(n, epochs, 2500 * epochs, seconds * std::exp(0.01 * normal(random))));
        }
      }
    }
    const Scaling scaling = scaling_of(runs);
    for (const auto& model : scaling.time_model) {
      if (model.ranks == 1) continue;
      fixed_seconds.add(model.fixed_ci95, fixed * 2);
      per_epoch.add(model.per_epoch_ci95, 48 / std::pow(2, 0.9));
      limit.add(model.speedup_limit_ci95, std::pow(2, 0.9));
    }
  }
  char what[96];
  std::snprintf(what, sizeof what, "%d repeats of 4 and 50 epochs, fixed = %.0f s", repeat, fixed * 2);
  print(what, "fixed", fixed_seconds, cases);
  print(what, "an epoch", per_epoch, cases);
  print(what, "S of long runs", limit, cases);
}

// The same length at every number of ranks a rank: weak scaling.
void weak(int cases, int repeat) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  Count efficiency, share;
  for (int c = 0; c < cases; ++c) {
    std::vector<ScalingRun> runs;
    for (const int n : rank_counts) {
      // On N ranks a share of 0.1 of the time is serial: one rank would need 0.1 + 0.9 N of it.
      const double seconds = 100.0 * n / gustafson_speedup(0.1, n);
      for (int i = 0; i < repeat; ++i) runs.push_back(row(n, 1, 1000 * n, seconds * std::exp(0.01 * normal(random))));
    }
    const Scaling scaling = scaling_of(runs);
    efficiency.add(point_of(scaling, 8).weak_efficiency_ci95, gustafson_speedup(0.1, 8) / 8);
    if (!scaling.weak.empty()) share.add(scaling.weak.front().ci95, 0.1);
  }
  char what[96];
  std::snprintf(what, sizeof what, "%d repeats, weak scaling", repeat);
  print(what, "efficiency(8)", efficiency, cases);
  print(what, "Gustafson s", share, cases);
}

// One run on 1 and one on 2 ranks whose steps follow each other with autocorrelation phi. `between`: the standard
// deviation between runs, which one run cannot know. `slow`: how many times as long the first step takes.
struct Steps {
  double phi = 0;
  int count = 200;
  double between = 0, slow = 1;
  int repeats = 1;
  bool hidden = false;  // half of the variance is noise of single steps, on top of the autocorrelated one
  bool exponential = false;
};

void steps(int cases, Steps kind) {
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  Count speedup;
  for (int c = 0; c < cases; ++c) {
    std::vector<ScalingRun> runs;
    for (const int n : {1, 2}) {
      for (int i = 0; i < kind.repeats; ++i) {
        ScalingRun run = row(n, 1, 6400, 2);  // two seconds beside the iterations
        run.warmup = static_cast<std::size_t>(std::max(1, kind.count / 10));
        const double level = (n == 1 ? 0.1 : 0.06) * std::exp(kind.between * normal(random));
        const double innovation = std::sqrt(1 - kind.phi * kind.phi);
        double state = normal(random);
        for (int k = 0; k < kind.count; ++k) {
          state = kind.phi * state + innovation * normal(random);
          double noise = kind.hidden ? std::sqrt(0.5) * (state + normal(random)) : state;
          if (kind.exponential) noise = skewed(noise);
          const double slow = k == 0 ? kind.slow : 1;
          run.iteration_seconds.push_back(k < static_cast<int>(run.warmup) ? level * slow : level * (1 + 0.1 * noise));
          run.seconds += run.iteration_seconds.back();
        }
        runs.push_back(run);
      }
    }
    const auto true_seconds = [&](double level) { return 2 + level * (kind.count - 1 + kind.slow); };
    speedup.add(point_of(scaling_of(runs), 2).speedup_ci95, true_seconds(0.1) / true_seconds(0.06));
  }
  char what[96];
  std::snprintf(what, sizeof what, "%d run%s, %d steps, phi = %.1f%s%s%s%s", kind.repeats, kind.repeats > 1 ? "s" : "",
                kind.count, kind.phi, kind.between > 0 ? ", 1 % between runs" : "", kind.slow > 1 ? ", slow first" : "",
                kind.hidden ? ", half white" : "", kind.exponential ? ", exponential" : "");
  print(what, "S(2)", speedup, cases);
}

// How often a law is refused, or a row called foreign, in tables of one true program whose labels differ in every row.
void refusals(int cases, int repeat, Truth truth, bool logarithmic) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  int refused = 0, foreign = 0, parted = 0;
  for (int c = 0; c < cases; ++c) {
    std::vector<ScalingRun> runs;
    for (const int n : {1, 2, 4, 8, 16}) {
      for (int i = 0; i < repeat; ++i) {
        const double seconds = truth.time(n) + (logarithmic ? 4 * std::log2(n) : 0);
        auto run = row(n, 1, 1000, seconds * std::exp(0.01 * normal(random)));
        run.config = {{"nodes", std::to_string((n + 1) / 2)}, {"date", std::to_string(c + i)}, {"program", "one"}};
        runs.push_back(run);
      }
    }
    const Scaling scaling = scaling_of(runs);
    parted += !scaling.refused.empty();
    for (const auto& fit : scaling.fits) {
      refused += fit.misfit;
      foreign += fit.foreign.has_value();
    }
  }
  std::printf(
      "  %d repeats, s = %.2f, kappa = %.3f%s: Amdahl's law refused in %.1f %%, a row foreign in %.1f %%, parted by "
      "labels in %.1f %% of %d\n",
      repeat, truth.serial, truth.kappa, logarithmic ? ", 4 s log2 N" : "", 100.0 * refused / cases,
      100.0 * foreign / cases, 100.0 * parted / cases, cases);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  int cases = 1000;
  std::string only;
  for (int i = 1; i + 1 < count; i += 2) {
    if (std::strcmp(arguments[i], "--cases") == 0) cases = std::atoi(arguments[i + 1]);
    if (std::strcmp(arguments[i], "--only") == 0) only = arguments[i + 1];
  }
  const auto wanted = [&](const char* part) { return only.empty() || only.find(part) != std::string::npos; };
  if (wanted("repeats")) {
    std::printf("Repeats of 1, 2, 4 and 8 ranks, 1 %% noise: share of the intervals that hold the truth\n");
    for (const int repeat : {1, 2, 3, 4, 10, 20}) repeats(cases, repeat, {}, Noise::normal);
    repeats(cases, 4, {0.1, 0}, Noise::uneven);
    for (const int repeat : {3, 4, 10, 20}) repeats(cases, repeat, {}, Noise::exponential);
    repeats(cases, 4, {0.1, 0.01}, Noise::normal);
    repeats(cases, 4, {0, 0}, Noise::normal);
  }
  if (wanted("lengths")) {
    std::printf("Time model\n");
    for (const int repeat : {1, 2, 3, 4, 10, 20}) lengths(cases, repeat, 10);
    lengths(cases, 4, 0);
  }
  if (wanted("weak")) {
    std::printf("Weak scaling\n");
    for (const int repeat : {2, 3, 10, 20}) weak(cases, repeat);
  }
  if (wanted("steps")) {
    std::printf("One run on 1 and one on 2 ranks, steps with 10 %% noise\n");
    for (const double phi : {0.0, 0.5, 0.9}) {
      for (const int steps_of_run : {30, 100, 400, 1000, 4000}) steps(cases, {.phi = phi, .count = steps_of_run});
    }
    steps(cases, {.phi = 0.9, .count = 2000, .hidden = true});
    steps(cases, {.phi = 0, .count = 200, .slow = 50});
    for (const double phi : {0.0, 0.5, 0.9}) {
      for (const int steps_of_run : {100, 400, 1000}) {
        steps(cases, {.phi = phi, .count = steps_of_run, .exponential = true});
      }
    }
    std::printf("The same where runs differ, which one run of each cannot know; with repeats it is known\n");
    steps(cases, {.phi = 0.5, .count = 400, .between = 0.01});
    steps(cases, {.phi = 0.5, .count = 400, .between = 0.01, .repeats = 3});
    steps(cases, {.phi = 0.5, .count = 400, .between = 0.01, .repeats = 10});
  }
  if (wanted("refusals")) {
    std::printf("Tables of one true program: at most %.0f %% may be refused where the law is true\n",
                100 * refusal_error_rate);
    for (const int repeat : {1, 3, 10}) refusals(cases, repeat, {}, false);
    refusals(cases, 3, {0.1, 0.001}, false);
    refusals(cases, 10, {0.02, 0}, true);
  }
  return 0;
}
