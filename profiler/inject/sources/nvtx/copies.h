// SPDX-License-Identifier: Apache-2.0
// The copies of NVTX in the loaded libraries. A fork may happen while one of them is starting.
//
// If another thread is inside NVTX's first call while a thread forks, NVTX's state in the child stays "started", and
// the child's first NVTX call spins without end. A thread may enter NVTX's first call at any moment, also while the
// system copies the memory. Therefore each fork first looks for the copies of NVTX, and the child resets those whose
// state is "started".
#pragma once

namespace paceline::inject {

// Before each fork. Cost: reads the initialised data of the libraries that were loaded since the last search.
void find_nvtx_copies();

// In a forked child. Safe in a signal handler.
void reset_nvtx_copies();

}  // namespace paceline::inject
