// SPDX-License-Identifier: Apache-2.0
#include "analysis/phases/phases.h"

namespace paceline::analysis {
namespace {

constexpr std::string_view names[phase_count] = {"startup",   "preprocess",    "forward",  "backward",
                                                 "optimizer", "communication", "evaluate", "checkpoint",
                                                 "copy",      "launch",        "idle",     "other"};

}  // namespace

std::string_view phase_name(Phase phase) { return names[static_cast<std::size_t>(phase)]; }

}  // namespace paceline::analysis
