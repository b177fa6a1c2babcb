// SPDX-License-Identifier: Apache-2.0
// How many floating-point operations a device can do in a second at most.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "analysis/run/rank_summary.h"

namespace paceline::analysis {

// By the name of the GPU and the type of the numbers ("f16", "bf16"), without sparsity, by its maker's data sheet.
// Nothing for other devices, and for 32-bit numbers, whose peak depends on whether TF32 is allowed.
std::optional<double> device_peak_flops(std::string_view gpu, std::string_view dtype);

// The sum over the ranks, each with one GPU. Nothing unless all GPUs of the ranks' hosts have one known peak.
std::optional<double> peak_flops_of(std::span<const RankSummary> ranks, std::string_view dtype);

}  // namespace paceline::analysis
