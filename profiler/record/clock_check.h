// SPDX-License-Identifier: Apache-2.0
// The error between the clocks of this machine's CPUs, measured before the command starts.
#pragma once

#include <string>

namespace paceline::record {

// Returns "NS BOOT_ID TEXT": the largest difference between the clocks of two CPUs at one moment, in nanoseconds, the
// boot that it is valid for, and how it was measured. Returns "" if it cannot be measured: only one CPU is allowed, or
// the CPUs are too busy.
//
// Two threads on different CPUs pass a word back and forth. The second thread reads its clock between two readings of
// the first, so the offset lies between the two differences; the narrowest of many rounds counts (Cristian,
// "Probabilistic clock synchronization", 1989). One CPU of each socket, and the last CPU of the first socket, are
// compared with the first allowed CPU. Only CPUs of the affinity mask are used. This takes about 5 ms at most, or
// longer if the second thread gets no CPU.
std::string measure_clock_error();

}  // namespace paceline::record
