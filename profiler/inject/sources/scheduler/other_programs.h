// SPDX-License-Identifier: Apache-2.0
// Which other processes of the machine use its CPUs while threads of this one wait for a CPU.
#pragma once

#include <cstdint>

namespace paceline::inject {

// Called by the drain while threads starve. Looks at all processes of the machine that this one may see, at most twice
// a second and with at most 0.1 % of a CPU, and records the busiest ones. Two looks make one interval. Returns the CPU
// time that it took, in ns.
std::int64_t look_for_other_programs(std::int64_t now_ns);

// Forgets the last look. Once for each file.
void start_other_programs();

}  // namespace paceline::inject
