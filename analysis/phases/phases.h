// SPDX-License-Identifier: Apache-2.0
// The phases of a rank. Every nanosecond of a rank belongs to exactly one phase.
//
// The innermost slice of the main thread to which the rules (phase_rules.h) give a phase decides, with one exception:
// compute inside a start-up, an evaluation or a checkpoint (preprocess, forward, backward, optimizer) belongs to that
// phase. Communication is communication wherever it happens, and so are the CUDA calls made for it. Time in which the
// thread waits for its device (idle) and only communication runs there is communication as well.
//
// Time outside all slices with a phase is `startup` before the first iteration and `other` afterwards. Start-up ends at
// the end of MPI_Init in a program without iterations, without MPI at the first slice, and at the latest at the first
// loss of events. Time in Rank::gaps (pauses and losses) belongs to no phase.
#pragma once

#include <cstdint>
#include <string_view>

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

}  // namespace paceline::analysis
