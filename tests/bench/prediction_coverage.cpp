// SPDX-License-Identifier: Apache-2.0
// How often the 95 % intervals of predictions hold the truth. Traces are drawn from jobs whose times are known
// processes; the truth of a change is the mean step of the changed job, simulated over many iterations without any
// trace.
//
//   prediction_coverage [--cases N]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "analysis/graph/what_if.h"
#include "analysis/trace/builder.h"
#include "tests/unit/analysis/simulated_steps.h"

namespace {

using namespace paceline::analysis;
using simulation::Noise;
using simulation::Random;

// A job with data-parallel steps: forward and backward of each rank, a blocking allreduce of the gradient, one
// of 8 bytes, the optimizer. Times in ns.
struct Job {
  const char* title = "";
  int ranks = 4, iterations = 100;
  double noise = 0.05, autocorrelation = 0;  // of a rank's work in a step
  double transfer_noise = 0.1;               // of a transfer's time, exponential
  double transfer_autocorrelation = 0;
  double slow = 1;  // the work of rank 1, as a factor
};
constexpr double forward_ns = 20e6, backward_ns = 40e6, optimizer_ns = 5e6;
constexpr double latency_ns = 1e6, ns_per_byte = 5, gradient_bytes = 4e6;
constexpr std::size_t layers = 4;  // of equal gradients and equal backward

struct Change {
  const char* title;
  Changes changes;
};
const std::vector<Change> all_changes = {
    {"half the bytes", {.bytes_per_value = 2}},
    {"half the bandwidth", {.byte_time = 2}},
    {"free communication", {.free_communication = true}},
    {"twice the batch", {.batch = 2}},
    {"ranks with equal work", {.balanced = true}},
    {"overlap, 4 buckets", {.schedule = GradientSchedule::overlap, .bucket_bytes = 1e6}},
    {"double buffering", {.schedule = GradientSchedule::double_buffering}},
};

// The times of one iteration.
struct Draw {
  std::vector<double> work;                 // of each rank, as a factor
  double transfer = 1, small_transfer = 1;  // as factors
};
class Draws {
 public:
  Draws(const Job& job, Random& random)
      : job_(job), random_(random), transfer_(job.transfer_autocorrelation, true, random) {
    for (int r = 0; r < job.ranks; ++r) work_.emplace_back(job.autocorrelation, false, random);
  }
  Draw next() {
    Draw draw;
    for (int r = 0; r < job_.ranks; ++r) {
      const double of_rank = r == 1 ? job_.slow : 1;
      draw.work.push_back(of_rank * std::max(1 + job_.noise * work_[static_cast<std::size_t>(r)].next(random_), 0.1));
    }
    draw.transfer = 1 + job_.transfer_noise * transfer_.next(random_);
    draw.small_transfer = 1 + job_.transfer_noise * (random_.exponential() - 1);
    return draw;
  }

 private:
  const Job& job_;
  Random& random_;
  std::vector<Noise> work_;
  Noise transfer_;
};

double transfer_ns(double bytes, const Changes& changes) {
  return changes.free_communication ? 0 : latency_ns + ns_per_byte * changes.byte_time * bytes;
}

// The iterations of the changed job, as means over the ranks, by recurrences of their own.
std::vector<double> changed_steps(const Job& job, const Changes& changes, int iterations, Random& random) {
  Draws draws(job, random);
  const auto ranks = static_cast<std::size_t>(job.ranks);
  const double bytes = gradient_bytes * (changes.bytes_per_value ? *changes.bytes_per_value / 4 : 1);
  std::vector<double> start(ranks, 0), steps;
  double averaged = 0;  // of double buffering: when the averaging of the last iteration ends
  for (int i = 0; i < iterations; ++i) {
    Draw draw = draws.next();
    if (changes.balanced) {
      const double mean = std::accumulate(draw.work.begin(), draw.work.end(), 0.0) / static_cast<double>(ranks);
      std::ranges::fill(draw.work, mean);
    }
    std::vector<double> next(ranks);
    const auto work = [&](std::size_t r, double ns) { return changes.batch * ns * draw.work[r]; };
    const auto last = [&](double backward) {  // over the ranks: forward and this part of backward are done
      double latest = 0;
      for (std::size_t r = 0; r < ranks; ++r) {
        latest = std::max(latest, start[r] + work(r, forward_ns + backward * backward_ns));
      }
      return latest;
    };
    double end = 0;
    if (changes.schedule == GradientSchedule::overlap) {
      for (std::size_t k = 1; k <= layers; ++k) {
        end =
            std::max(end, last(static_cast<double>(k) / layers)) + draw.transfer * transfer_ns(bytes / layers, changes);
      }
    } else if (changes.schedule == GradientSchedule::double_buffering) {
      end = averaged;
      averaged = std::max(averaged, last(1)) + draw.transfer * transfer_ns(bytes, changes);
    } else {
      end = last(1) + draw.transfer * transfer_ns(bytes, changes);
    }
    double step = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      const double agreed = std::max(last(1), end) + draw.small_transfer * transfer_ns(8, changes);
      next[r] = agreed + optimizer_ns;
      step += (next[r] - start[r]) / static_cast<double>(ranks);
    }
    start = next;
    steps.push_back(1e-9 * step);
  }
  return steps;
}

Trace recorded(const Job& job, Random& random) {
  Draws draws(job, random);
  const auto ranks = static_cast<std::size_t>(job.ranks);
  const std::string trainer = "paceline.trainer";
  TraceBuilder run;
  std::vector<TrackBuilder*> mains;
  for (int r = 0; r < job.ranks; ++r) mains.push_back(&run.add_rank(r, job.ranks).add_main_thread());
  std::vector<double> start(ranks, 0);
  for (int i = 0; i < job.iterations; ++i) {
    const Draw draw = draws.next();
    std::vector<double> arrival(ranks);
    for (std::size_t r = 0; r < ranks; ++r) arrival[r] = start[r] + draw.work[r] * (forward_ns + backward_ns);
    const double end = std::ranges::max(arrival) + draw.transfer * transfer_ns(gradient_bytes, {});
    for (std::size_t r = 0; r < ranks; ++r) {
      TrackBuilder& main = *mains[r];
      const auto at = [](double ns) { return static_cast<std::int64_t>(ns); };
      main.push(at(start[r]), "iteration", trainer, "iteration");
      main.argument("payload", i);
      const double backward = start[r] + draw.work[r] * forward_ns;
      main.add_slice(at(start[r]), at(backward), "forward", trainer, "forward");
      main.push(at(backward), "backward", trainer, "backward");
      for (std::size_t k = 0; k < layers; ++k) {
        const double layer = draw.work[r] * backward_ns / layers;
        main.add_slice(at(backward + static_cast<double>(k) * layer), at(backward + static_cast<double>(k + 1) * layer),
                       "layer", trainer, "layer");
        main.argument("payload", static_cast<std::int64_t>(gradient_bytes / layers));
      }
      main.pop(at(arrival[r]));
      main.add_slice(at(arrival[r]), at(end), "MPI_Allreduce", "mpi", "collective");
      main.argument("bytes", gradient_bytes);
      main.text_argument("communicator", "MPI_COMM_WORLD");
      main.argument("sequence", 2 * i);
      const double agreed = end + draw.small_transfer * latency_ns;
      main.add_slice(at(end), at(agreed), "MPI_Allreduce", "mpi", "collective");
      main.argument("bytes", 8);
      main.text_argument("communicator", "MPI_COMM_WORLD");
      main.argument("sequence", 2 * i + 1);
      start[r] = agreed + optimizer_ns;
      main.add_slice(at(agreed), at(start[r]), "optimizer", trainer, "optimizer");
      main.pop(at(start[r]));
    }
  }
  return run.finish();
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void count(const Job& job, int cases) {
  std::printf("%s\n", job.title);
  Random random(7);
  std::vector<double> truths;
  for (const Change& change : all_changes)
    truths.push_back(mean_of(changed_steps(job, change.changes, 200'000, random)));
  const double unchanged = mean_of(changed_steps(job, {}, 200'000, random));
  struct Count {
    int shown = 0, held = 0, low = 0;
    double width = 0, off = 0;
  };
  std::vector<Count> counts(all_changes.size());
  for (int c = 0; c < cases; ++c) {
    const Trace trace = recorded(job, random);
    const RunIndex index(trace);
    const Predictor predictor(index, dependency_graph(index), {});
    for (std::size_t k = 0; k < all_changes.size(); ++k) {
      const Prediction prediction = predictor.predict(all_changes[k].changes);
      counts[k].off += prediction.step_s / truths[k] - 1;
      if (!prediction.ci95) continue;
      // In the conditions of the run, which may have been shorter or longer than usual.
      const double truth = prediction.ci95_of_change ? predictor.step_s() * truths[k] / unchanged : truths[k];
      ++counts[k].shown;
      counts[k].held += prediction.ci95->contains(truth);
      counts[k].low += prediction.ci95->low > truth;
      counts[k].width += (prediction.ci95->high - prediction.ci95->low) / truths[k];
    }
  }
  for (std::size_t k = 0; k < all_changes.size(); ++k) {
    const Count& of = counts[k];
    std::printf("  %-24s truth %6.2f ms  bias %+5.2f %%", all_changes[k].title, 1e3 * truths[k], 100 * of.off / cases);
    if (of.shown == 0) {
      std::printf("  no interval\n");
      continue;
    }
    std::printf("  holds %5.1f %%  (above %4.1f %%, width %4.1f %%, shown in %5.1f %%)\n", 100.0 * of.held / of.shown,
                100.0 * of.low / of.shown, 100 * of.width / of.shown, 100.0 * of.shown / cases);
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  int cases = 1000;
  if (argc == 3 && std::strcmp(argv[1], "--cases") == 0) cases = std::atoi(argv[2]);
  if (argc != 1 && (argc != 3 || cases < 1)) {
    std::fprintf(stderr, "usage: prediction_coverage [--cases N]\n");
    return 2;
  }
  const Job jobs[] = {
      {.title = "4 ranks, 60 iterations, 5 % noise", .iterations = 60},
      {.title = "4 ranks, 100 iterations, 5 % noise"},
      {.title = "4 ranks, 400 iterations, 5 % noise", .iterations = 400},
      {.title = "2 ranks, 200 iterations, 20 % noise, transfers 40 %",
       .ranks = 2,
       .iterations = 200,
       .noise = 0.2,
       .transfer_noise = 0.4},
      {.title = "4 ranks, 400 iterations, autocorrelation 0.5", .iterations = 400, .autocorrelation = 0.5},
      {.title = "4 ranks, 1000 iterations, autocorrelation 0.9", .iterations = 1000, .autocorrelation = 0.9},
      {.title = "4 ranks, 400 iterations, transfers 40 %, autocorrelation 0.5 of both",
       .iterations = 400,
       .autocorrelation = 0.5,
       .transfer_noise = 0.4,
       .transfer_autocorrelation = 0.5},
      {.title = "8 ranks, 400 iterations, rank 1 by 20 % slower", .ranks = 8, .iterations = 400, .slow = 1.2},
  };
  for (const Job& job : jobs) count(job, cases);
}
