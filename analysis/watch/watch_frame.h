// SPDX-License-Identifier: Apache-2.0
// What `paceline watch` shows of a running job at one time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/communication/lateness.h"
#include "analysis/run/finding.h"

namespace paceline::analysis {

enum class LiveState : std::uint8_t {
  running,  // or not known to have ended: the process is on another machine
  ended,    // the recorder closed the file
  killed,   // the process is gone and its file was not closed
  lost,     // the file vanished or cannot be read any more
};

struct WatchedRank {
  int rank = 0;
  std::string host;
  LiveState state = LiveState::running;
  std::uint64_t iterations = 0;    // finished ones
  std::int64_t step_ns = 0;        // median of its last iterations; 0: it has none
  double wait_share = 0;           // of its last iterations: waiting for other ranks in collectives
  double late_ns = 0;              // mean over its last iterations: behind the median of the other ranks (lateness.h)
  std::int64_t newest_age_ns = 0;  // since its newest range, mark or MPI call
  std::string doing;               // the innermost range or call of the main thread; hostile text
  std::string problem;             // damage or failure, for people; ""
  std::uint64_t nvtx_events = 0, mpi_events = 0, skipped_events = 0;
};

struct WatchFrame {
  std::string path;
  std::vector<WatchedRank> ranks;  // by rank
  int expected_ranks = 0;          // of the job; 0 = not known
  std::size_t hosts = 0;
  std::int64_t elapsed_ns = 0;  // since the start of the first process
  bool ended = false;           // all ranks have

  std::uint64_t iterations = 0;            // that all ranks finished
  std::int64_t newest_iteration = 0;       // the number of the last of them
  std::vector<double> steps_ns;            // of the last ones: mean over the ranks, the oldest first
  std::int64_t median_ns = 0, p95_ns = 0;  // of these
  std::optional<double> trend;  // the median of their newer half against that of their older half, as a change
  std::array<double, phase_count> phase_shares{};  // of these steps, mean over the ranks

  std::optional<LatenessTest> lateness;  // nothing until it was tested; ranks are indices into `ranks`
  std::vector<Finding> findings;         // hangs and slow ranks; places are in `ranks`
  std::vector<std::string> notes;        // files that were left out, one line each
};

}  // namespace paceline::analysis
