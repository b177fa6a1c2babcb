// SPDX-License-Identifier: Apache-2.0
// The secret that the recorders of one job share: 16 random bytes in a file of the output directory that only the user
// can read (".clock-JOB.key"). The first recorder makes it, the last one removes it.
#pragma once

#include "profiler/inject/sources/clock_exchange/beacon.h"
#include "profiler/inject/system/siphash.h"

namespace paceline::inject {

// Makes the secret of the job, or reads the one that is there. Returns false if the file cannot be made, or if others
// than the user could have read or made it. Waits 100 ms at most for another recorder that is writing it.
bool share_secret(const char* directory, std::uint64_t job, SipKey& secret);

// Removes the secret if no recorder of the job has a beacon in the directory any more.
void remove_secret(const char* directory, std::uint64_t job);

}  // namespace paceline::inject
