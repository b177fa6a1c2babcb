// Where each nanosecond of a rank went: every one belongs to exactly one phase.
//
// The innermost slice of the main thread that the rules (phase_rules.h) give a phase decides, with one exception: what
// is computed for a start-up, an evaluation or a checkpoint (preprocess, forward, backward, optimizer inside it) is
// theirs. Communication is communication wherever it happens, and so are the CUDA calls made for it. While the thread
// waits for its device (idle) and nothing but communication runs there, that is communication, too. Outside all ruled
// slices, time before the first iteration is `startup` (in a program without iterations: before the end of MPI_Init, or
// else before the first slice), or before the first loss of events; later time is `other`. Time in Rank::gaps, pauses
// and losses alike, belongs to no phase.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

enum class Phase : std::uint8_t {
  startup,
  preprocess,
  forward,
  backward,
  optimizer,
  communication,
  evaluate,
  checkpoint,
  copy,
  launch,
  idle,
  other
};
inline constexpr std::size_t phase_count = 12;

std::string_view phase_name(Phase phase);  // the key in JSON

struct PhaseInterval {
  std::int64_t start_ns = 0, end_ns = 0;
  Phase phase = Phase::other;
};

struct RankPhases {
  std::array<std::int64_t, phase_count> total_ns{};  // adds up to the rank's recorded time exactly
  std::vector<PhaseInterval> intervals;              // disjoint, sorted, covering start to end but for Rank::gaps
};

// Follows the rank's main thread; the innermost slice with a phase decides. Cost: linear in its slices.
RankPhases phases_of(const Trace& trace, const Rank& rank);

// The phase that a slice alone would be given by the rules; Phase::other where none applies. For colours.
Phase phase_of_slice(const Trace& trace, const Rank& rank, const Track& track, std::size_t slice);

}  // namespace paceline::analysis
