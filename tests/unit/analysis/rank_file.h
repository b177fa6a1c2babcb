// SPDX-License-Identifier: Apache-2.0
// Writes a trace that a test made in memory as the .pace files that the recorder would have written.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "analysis/trace/trace.h"
#include "profiler/format/mpi_functions.h"
#include "profiler/format/writer.h"

namespace paceline::analysis {

using format::EventType;

// Writes the threads of a rank as the recorder would have: NVTX ranges and marks, MPI_Allreduce, the states of threads
// whose switches are known, and samples of stacks. Other calls of MPI are left out.
class RankFile {
 public:
  RankFile(const Trace& trace, const Rank& rank) : trace_(trace), rank_(rank), writer_(facts(rank)) {}

  void write(const std::filesystem::path& path) {
    for (const Track& track : rank_.tracks) {
      if (track.kind == TrackKind::thread) add(track);
    }
    writer_.write(path);
  }

 private:
  enum What { ends, marks, begins };  // in this order where times are equal
  struct Step {
    std::int64_t ns;
    What what;
    std::int64_t which;
    auto operator<=>(const Step&) const = default;
  };
  static constexpr std::uint32_t drain = 1'000;  // its track
  static constexpr auto allreduce = static_cast<std::uint64_t>(format::MpiId::Allreduce);

  static format::HeaderFacts facts(const Rank& rank) {
    format::HeaderFacts facts;
    facts.file_id = 40 + static_cast<std::uint64_t>(rank.rank);
    facts.pid = 100 + static_cast<std::uint32_t>(rank.rank);
    facts.ticks_per_second = 1e9;
    facts.start_ticks = 5'000'000;
    facts.start_utc_ns = 1'700'000'000'000'000'000;
    facts.rank = rank.rank;
    facts.world_size = rank.world_size;
    facts.host = rank.host.c_str();
    facts.boot_id = rank.host.c_str();
    facts.job = "7";
    if (rank.clock_error_ns > 0) facts.utc_error_us = static_cast<std::int64_t>(rank.clock_error_ns / 1e3);
    return facts;
  }

  std::uint64_t number(const Slices& slices, std::size_t i, const char* key) const {
    return static_cast<std::uint64_t>(slices.number(i, trace_.names.find(key)).value_or(0));
  }

  void add(const Track& thread) {
    // The main thread's id is the process's.
    if (!thread.main) {
      ++track_;
      writer_.thread(track_, 10'000 + track_, thread.label);
    }
    const std::uint32_t track = thread.main ? 0 : track_;
    const std::uint64_t id = thread.main ? 100 + static_cast<std::uint64_t>(rank_.rank) : 10'000 + track_;
    if (thread.states.exact) add_states(thread.states, id);
    add_samples(thread.stacks, id);
    std::vector<Step> steps;
    for (std::size_t i = 0; i < thread.slices.size(); ++i) {
      if (is_mpi(thread.slices, i) && trace_.name_of(thread.slices, i) != "MPI_Allreduce") continue;
      steps.push_back({thread.slices.start_ns[i], begins, static_cast<std::int64_t>(i)});
      steps.push_back({thread.slices.end_ns(i), ends, -static_cast<std::int64_t>(i)});  // the inner one first
    }
    for (std::size_t i = 0; i < thread.marks.size(); ++i) {
      steps.push_back({thread.marks.start_ns[i], marks, static_cast<std::int64_t>(i)});
    }
    std::ranges::sort(steps);
    for (const Step& step : steps) {
      const auto i = static_cast<std::size_t>(std::abs(step.which));
      if (step.what == marks) range(track, step.ns, EventType::mark, thread.marks, i);
      if (step.what == begins) begin(track, step.ns, thread.slices, i);
      if (step.what == ends) end(track, step.ns, thread.slices, i);
    }
  }

  // The drain's own track comes behind those of the threads.
  void add_states(const ThreadStates& states, std::uint64_t id) {
    for (std::size_t i = 0; i + 1 < states.size(); ++i) {
      const auto state = states.running_ns[i + 1] > states.running_ns[i]   ? format::ThreadState::running
                         : states.waiting_ns[i + 1] > states.waiting_ns[i] ? format::ThreadState::waiting
                                                                           : format::ThreadState::blocked;
      writer_.add(drain, static_cast<std::uint64_t>(states.time_ns[i]), EventType::thread_switch,
                  id | static_cast<std::uint64_t>(state) << 32);
    }
    if (states.empty()) return;
    writer_.add(drain, static_cast<std::uint64_t>(states.time_ns.back()), EventType::thread_switch,
                id | static_cast<std::uint64_t>(format::ThreadState::ended) << 32);
  }

  void add_samples(const StackSamples& samples, std::uint64_t id) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      define(samples.stack[i]);
      writer_.add(drain, static_cast<std::uint64_t>(samples.time_ns[i]), EventType::stack_sample,
                  id | std::uint64_t{samples.stack[i]} << 32, {{static_cast<std::uint64_t>(samples.period_ns), 0}});
    }
  }
  void define(StackId stack) {
    if (stack == 0 || !stacks_.insert(stack).second) return;
    const StackId caller = trace_.stacks.caller(stack);
    define(caller);
    const Frame& frame = trace_.stacks[trace_.stacks.innermost(stack)];
    const std::uint64_t function = writer_.name(trace_.names[frame.function]),
                        file = writer_.name(trace_.names[frame.file]);
    writer_.add(drain, 0, EventType::stack, stack | std::uint64_t{caller} << 32, {{function | file << 32, frame.line}});
  }

  bool is_mpi(const Slices& slices, std::size_t i) const {
    return trace_.names[trace_.kind_of(slices, i).domain] == "mpi";
  }

  void begin(std::uint32_t track, std::int64_t ns, const Slices& slices, std::size_t i) {
    if (!is_mpi(slices, i)) return range(track, ns, EventType::push, slices, i);
    writer_.add(track, static_cast<std::uint64_t>(ns), EventType::mpi_begin_coll,
                allreduce | std::uint64_t{0xffffffff} << 16,
                {{number(slices, i, "bytes"), number(slices, i, "sequence") << 32}});
  }

  void end(std::uint32_t track, std::int64_t ns, const Slices& slices, std::size_t i) {
    const auto ticks = static_cast<std::uint64_t>(ns);
    if (is_mpi(slices, i)) return writer_.add(track, ticks, EventType::mpi_end, allreduce);
    writer_.add(track, ticks, EventType::pop, writer_.domain(trace_.names[trace_.kind_of(slices, i).domain]));
  }

  // A push or a mark, with its payload if it has one.
  void range(std::uint32_t track, std::int64_t ns, EventType type, const Slices& slices, std::size_t i) {
    const Kind& kind = trace_.kind_of(slices, i);
    const auto scope = writer_.scope(trace_.names[kind.name], trace_.names[kind.domain], trace_.names[kind.category]);
    const auto payload = slices.number(i, trace_.names.find("payload"));
    if (!payload) return writer_.add(track, static_cast<std::uint64_t>(ns), type, scope);
    writer_.add(track, static_cast<std::uint64_t>(ns),
                type == EventType::push ? EventType::push_payload : EventType::mark_payload, scope,
                {{static_cast<std::uint64_t>(format::PayloadType::floating), std::bit_cast<std::uint64_t>(*payload)}});
  }

  const Trace& trace_;
  const Rank& rank_;
  format::TraceWriter writer_;
  std::uint32_t track_ = 0;   // the last one given to a thread
  std::set<StackId> stacks_;  // that are defined
};

// Writes each rank of the trace to DIRECTORY/rankN.pace.
inline void write_run(const Trace& trace, const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  for (const Rank& rank : trace.ranks) {
    RankFile(trace, rank).write(directory / ("rank" + std::to_string(rank.rank) + ".pace"));
  }
}

}  // namespace paceline::analysis
