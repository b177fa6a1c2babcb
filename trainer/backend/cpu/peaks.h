// SPDX-License-Identifier: Apache-2.0
// What the CPUs of a rank reach at most.
#pragma once

#include <string>

namespace paceline::train {

struct Peaks {
  double flops = 0, bytes = 0;  // in a second
};

// Measures both for about 0.1 s with the threads of the calling thread's OpenMP team: the fastest run of oneDNN's
// convolution that needs the least memory for its operations, with numbers of the type `dtype` ("f32", "bf16"), and the
// fastest a = b + c of arrays that no cache holds. Needs 96 MiB meanwhile.
Peaks measure_peaks(const std::string& dtype);

}  // namespace paceline::train
