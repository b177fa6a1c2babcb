// How far the clocks of this machine's CPUs are apart, measured before the command starts.
#pragma once

#include <string>

namespace paceline::record {

// "NS BOOT_ID TEXT": a bound of what two CPUs read at one moment, in nanoseconds, the boot that it holds for, and how
// it was measured. Empty where it cannot be measured: one CPU is allowed, or they are too busy.
//
// A thread on one CPU and a thread on another pass a word to and fro. The other one reads its clock between two readings
// of the first, so its offset lies between the two differences; the narrowest of many rounds counts (Cristian,
// "Probabilistic clock synchronization", 1989). One CPU of each socket is compared with the first allowed one, and the
// last of the first socket. Only CPUs of the affinity mask are used. Takes at most about
// 5 ms, and longer only where the second thread gets no CPU meanwhile.
std::string measure_clock_error();

}  // namespace paceline::record
