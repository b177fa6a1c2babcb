// SPDX-License-Identifier: Apache-2.0
// The running and waiting times of the thread that has the iterations, as it reads them itself where an iteration
// begins and ends. Without its switches, the drain's turns are too far apart to say what an iteration did.
#pragma once

namespace paceline::inject {

// Whether the calls below record anything. The scheduler allows it while it records, no filter of system calls applies
// and the main thread's switches are not recorded.
void allow_iteration_sums(bool allowed);

// Called by the thread that has the iterations, at their borders. Reads nothing if the last reading is less than 5 ms
// old, and the waiting time, which stands for as long as it was not read again, every 40 ms. Cost: 2 µs, and 22 µs
// after 10 ms of other work, when nothing of it is in the CPU's caches; less for the running time alone, which is one
// of three system calls.
void record_iteration_sums();

// In a forked child, whose threads are others.
void forget_iteration_sums();

}  // namespace paceline::inject
