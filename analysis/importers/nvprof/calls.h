// SPDX-License-Identifier: Apache-2.0
// The names of CUDA's functions by the numbers that CUPTI gives to them.
#pragma once

#include <cstdint>
#include <string>

namespace paceline::analysis {

// "cudaLaunchKernel_v7000" for a call of the runtime, "cuLaunchKernel" for one of the driver. "CUDA runtime call 211"
// where the number is not known, or where Paceline was built without CUPTI's headers.
std::string cuda_call_name(bool driver, std::int64_t number);

}  // namespace paceline::analysis
