// SPDX-License-Identifier: Apache-2.0
// The number of threads that a rank computes with.
#pragma once

namespace paceline::train {

// Sets the number of threads for OpenMP, which oneDNN uses, and returns it. threads = 0: OMP_NUM_THREADS if it is set,
// else an even share of the host's cores, within those that the launcher bound this rank to. Throws Error (usage) for
// far more threads than cores.
int set_threads(int threads, int ranks_on_host);

}  // namespace paceline::train
