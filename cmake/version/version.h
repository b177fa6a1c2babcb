// SPDX-License-Identifier: Apache-2.0
// What `--version` of each program prints.
#pragma once
#include <string>

namespace paceline {

// "PROGRAM 1.0.0" in the first line, for scripts. The lines after it, for reports of faults: the commit that was built,
// or "unknown" without git; the compiler; the vector instructions of this processor that Paceline has code for; and the
// MPI and the CUDA toolkit that were found when the program was built. Reads /proc/cpuinfo.
std::string version_text(const std::string& program);

}  // namespace paceline
