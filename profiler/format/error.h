// The one error type of the profiler, the analysis and the viewer.
//
// Thrown where input may be bad (a file, an option), caught in main(), printed as one line. The message names the file
// or option, the place in it, what is wrong and what to do. Never thrown on a recording path.
#pragma once

#include <stdexcept>

namespace paceline {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace paceline
