// SPDX-License-Identifier: Apache-2.0
// What one rank contributes to the figures of its run.
//
// A summary is plain data without pointers into the trace, so several processes can summarise some of the ranks each
// and one of them merges all summaries (run_analysis.h).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/device/gpu_kernels.h"
#include "analysis/device/launches.h"
#include "analysis/phases/losses.h"
#include "analysis/phases/stage_times.h"
#include "analysis/run/index/run_index.h"
#include "analysis/run/layer_costs.h"
#include "analysis/statistics/range_statistics.h"

namespace paceline::analysis {

struct AccuracyPoint {
  std::int64_t time_ns = 0;  // since the run's zero
  double accuracy = 0;
};

// A GPU that reported an error, or whose clocks were slowed down for heat or power.
struct GpuTrouble {
  std::string device;               // "GPU 0"
  std::optional<double> xid_error;  // the first one; nothing where the clocks were slowed down
  std::size_t further_errors = 0;
  double slowed_down = 0;  // share of the samples
};

// How often the kernel enforced the limits of the rank's control group (a container's or a batch job's).
struct CgroupUse {
  double periods = 0, throttled_periods = 0;  // of the CPU limit
  double throttled_s = 0;                     // added up over the CPUs
  double oom_kills = 0, memory_hits = 0, memory_reclaims = 0;
};

struct RankSummary {
  int rank = 0, world_size = 1;
  std::string path, format, host, boot_id;
  std::int64_t start_ns = 0, end_ns = 0;  // process start and last event, since the run's zero
  std::int64_t wall_ns = 0;               // the recorded time between them = the sum of the phases
  std::int64_t span_ns = 0;               // the whole time between them
  bool ended = true, damaged = false;
  std::string damage;
  std::string clock_source = {};
  double clock_error_ns = 0;
  std::optional<std::int64_t> utc_of_zero_ns = {};
  std::map<std::string, std::string> set, facts;  // as in Rank
  std::map<std::string, std::uint64_t> dropped;   // lost and incomplete events by cause
  std::vector<std::string> pauses = {};           // why parts were not recorded, losses left out
  RankLosses losses = {};
  std::optional<TimeInterval> first_loss = {};        // on the main thread
  std::vector<std::int64_t> touched_iterations = {};  // the numbers of those that losses touch

  std::array<std::int64_t, phase_count> phase_ns{};
  std::vector<Iteration> iterations = {};
  std::vector<Interlude> interludes = {};
  CollectiveCalls collective_calls = {};
  bool communicated = false;     // some thread was seen to communicate
  std::uint64_t unobserved = 0;  // collectives that were only counted: a tenth of the rank's, or more
  std::optional<Overlap> overlap = {};
  std::optional<GpuUsage> gpu = {};
  std::vector<KernelStatistics> gpu_kernels = {};
  std::optional<Launches> launches = {};
  std::vector<StreamIdle> stream_idle = {};
  std::vector<RangeStatistics> ranges = {};  // the largest total first

  std::vector<std::string> descriptions = {};  // the messages of its marks `run`
  std::vector<AccuracyPoint> accuracies = {};  // its marks `accuracy`, by time
  std::optional<double> waiting_for_cpu = {};  // share of its time that the main thread was ready to run but had no CPU
  std::vector<GpuTrouble> gpu_troubles = {};
  std::optional<CgroupUse> cgroup = {};      // nothing without limits
  StageTimes stage = {};                     // of a pipeline
  LayerCosts layers = {};                    // as the program states them
  std::vector<ExchangeTime> exchanges = {};  // of a sharded optimizer or of compressed gradients
};

// Summarises each rank of the trace, several at a time. Cost: linear in the slices.
std::vector<RankSummary> summarise(const Trace& trace);
// The same without the collective calls, which stay in the index.
std::vector<RankSummary> summaries_of(const RunIndex& index);

// The part of a summary that needs no events: who the rank is, where it ran and how it ended. O(ranks).
std::vector<RankSummary> identities(const Trace& trace);

// The status other than 0 with which the rank's process ended; "" if it ended with 0, did not end, or that is not
// known.
std::string failure_of(const RankSummary& rank);

// One sentence about the ranks whose process did not come to its end: "Rank 1 did not end by itself (a signal ended it,
// it crashed, or it still runs): its last event is at 1.204 s." Or "Rank 1 still runs: …" "" where all did.
std::string sudden_ends_text(std::span<const RankSummary> ranks);

}  // namespace paceline::analysis
