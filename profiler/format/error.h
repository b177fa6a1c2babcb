// SPDX-License-Identifier: Apache-2.0
// The one error type of the profiler, the analysis and the viewer.
//
// Code that reads input (a file, an option) throws it, and main() catches it and prints one line. The message names the
// file or option, the place in it, what is wrong and what to do. The recorder never throws it while it records.
#pragma once

#include <stdexcept>

namespace paceline {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace paceline
