// SPDX-License-Identifier: Apache-2.0
// Marks that tell a profiler what each layer computes and moves, and what the machine can do at most.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/nn/network.h"

namespace paceline::train {

// Marks of the category `layers`, JSON objects with the costs of some layers each (docs/metrics.md), and one with the
// peaks of this rank's CPUs where `on_cpu`. Measures these for 0.1 s. Does nothing without a profiler.
void mark_layers(const Network& network, std::int64_t batch, const std::string& dtype, bool on_cpu);

}  // namespace paceline::train
