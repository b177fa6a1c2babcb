// SPDX-License-Identifier: Apache-2.0
// A training job of two ranks whose threads' states are known. Times in ms, without a cause:
//
//   iterations of: preprocess 10, forward 30, MPI_Allreduce 10, optimizer 10, all of it on the CPU.
//
// A cause lengthens one part of some iterations on one rank.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analysis/trace/builder.h"

namespace paceline::analysis {

// The states of a thread, written one after the other.
class StateWriter {
 public:
  explicit StateWriter(std::int64_t start_ns) { add(start_ns, 0, 0); }
  void runs(std::int64_t ns) { add(ns, ns, 0); }
  void waits(std::int64_t ns) { add(ns, 0, ns); }
  void sleeps(std::int64_t ns) { add(ns, 0, 0); }
  ThreadStates take(bool exact = true) {
    states_.exact = exact;
    return std::move(states_);
  }

 private:
  void add(std::int64_t ns, std::int64_t running, std::int64_t waiting) {
    now_ += ns, running_ += running, waiting_ += waiting;
    states_.time_ns.push_back(now_);
    states_.running_ns.push_back(running_);
    states_.waiting_ns.push_back(waiting_);
  }
  ThreadStates states_;
  std::int64_t now_ = 0, running_ = 0, waiting_ = 0;
};

// What a rank does longer in an iteration, all of it after its preprocess range began and before the allreduce, or,
// `held_up`, inside the allreduce, which then ends later on both ranks, or, `leaves_later`, on this rank alone.
struct Delay {
  std::int64_t runs_ms = 0, waits_ms = 0, sleeps_ms = 0, collects_ms = 0, held_up_ms = 0, leaves_later_ms = 0;
  std::int64_t evaluates_ms = 0;  // before the iteration
  std::int64_t before_ms() const { return runs_ms + waits_ms + sleeps_ms + collects_ms; }
};

struct CauseJob {
  int iterations = 40;
  std::function<Delay(int rank, int iteration)> delay = [](int, int) { return Delay{}; };
  bool states = true;
  std::string other_program = {};  // used 1 CPU during the whole job
  double further_cpus = 0;         // that a second program used
};

inline Trace trace_of(const CauseJob& job) {
  constexpr std::int64_t ms = 1'000'000;
  TraceBuilder run;
  std::vector<TrackBuilder*> mains;
  std::vector<StateWriter> states(2, StateWriter(0));
  RankBuilder* first = nullptr;
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = run.add_rank(r, 2);
    if (r == 0) first = &rank;
    rank.info().host = "alice";
    rank.info().format = "pace";
    mains.push_back(&rank.add_main_thread());
  }
  std::int64_t now[2] = {};
  for (int i = 0; i < job.iterations; ++i) {
    std::int64_t arrival[2], held_up = 0;
    for (int r = 0; r < 2; ++r) {
      TrackBuilder& main = *mains[static_cast<std::size_t>(r)];
      StateWriter& state = states[static_cast<std::size_t>(r)];
      const Delay delay = job.delay(r, i);
      const std::int64_t begin = now[r] + delay.evaluates_ms * ms;
      if (delay.evaluates_ms > 0) {
        // Two batches, with a wait for the next one between them.
        main.add_slice(now[r], now[r] + delay.evaluates_ms / 2 * ms, "evaluate", "paceline.trainer", "evaluate");
        main.add_slice(begin - 1 * ms, begin, "evaluate", "paceline.trainer", "evaluate");
      }
      main.push(begin, "iteration", "paceline.trainer", "iteration");
      main.argument("payload", i);
      const std::int64_t forward = begin + (10 + delay.before_ms()) * ms;
      main.push(begin, "preprocess", "paceline.trainer", "preprocess");
      if (delay.collects_ms > 0) {
        main.add_slice(begin, begin + delay.collects_ms * ms, "garbage collection", "torch", "gc");
      }
      main.pop(forward);
      main.add_slice(forward, forward + 30 * ms, "forward", "paceline.trainer", "forward");
      arrival[r] = forward + 30 * ms;
      if (delay.collects_ms > 0) state.runs(delay.collects_ms * ms);
      if (delay.sleeps_ms > 0) state.sleeps(delay.sleeps_ms * ms);
      if (delay.waits_ms > 0) state.waits(delay.waits_ms * ms);
      state.runs((40 + delay.runs_ms + delay.evaluates_ms) * ms);
      held_up = std::max(held_up, delay.held_up_ms);
    }
    const std::int64_t last = std::max(arrival[0], arrival[1]), first_end = last + (10 + held_up) * ms;
    for (int r = 0; r < 2; ++r) {
      TrackBuilder& main = *mains[static_cast<std::size_t>(r)];
      StateWriter& state = states[static_cast<std::size_t>(r)];
      const std::int64_t later = job.delay(r, i).leaves_later_ms * ms, end = first_end + later;
      main.add_slice(arrival[r], end, "MPI_Allreduce", "mpi", "collective");
      main.argument("bytes", 1e6);
      main.text_argument("communicator", "MPI_COMM_WORLD");
      main.argument("sequence", i);
      main.add_slice(end, end + 10 * ms, "optimizer", "paceline.trainer", "optimizer");
      main.pop(end + 10 * ms);
      // MPI polls: a rank runs while it waits.
      state.runs(last - arrival[r]);
      const std::int64_t off = job.delay(r, i).held_up_ms;
      if (off > 0) state.waits(off * ms);
      state.runs(first_end - last - off * ms);
      if (later > 0) state.sleeps(later);
      state.runs(10 * ms);
      now[r] = end + 10 * ms;
    }
  }
  const std::int64_t job_end = std::max(now[0], now[1]);
  if (!job.other_program.empty()) {
    TrackBuilder& used = first->add_counter("CPUs used by another program", "CPUs", job.other_program, false);
    used.add_sample(0, 1);
    used.add_sample(job_end, 0);
    TrackBuilder& further = first->add_counter("CPUs used by another program", "CPUs", "as", false);
    further.add_sample(0, job.further_cpus);
    further.add_sample(job_end, 0);
  }
  Trace trace = run.finish();
  for (std::size_t r = 0; r < 2; ++r) {
    trace.ranks[r].start_ns = 0;
    trace.ranks[r].end_ns = job_end;
    if (job.states) trace.ranks[r].tracks[0].states = states[r].take();
  }
  return trace;
}

}  // namespace paceline::analysis
