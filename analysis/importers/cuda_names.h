// SPDX-License-Identifier: Apache-2.0
// The names of CUDA's functions, copies and kinds of memory, by CUPTI's numbers, equal in all trace formats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace paceline::analysis {

// "_Z6kernelPf" -> "kernel(float*)"; a name that is not mangled stays as it is.
std::string demangled(std::string_view name);

// The same for a stack, where the name of a function is enough: without parameters, arguments of templates and the type
// that it returns. "_ZN3net5orderIdEEvRSt6vectorIT_E" -> "net::order".
std::string short_function(std::string_view name);

// The text of a CUpti_ActivityMemoryKind: "pinned"; for device memory the device: "GPU 1", "GPU 1 array".
std::string memory_text(std::uint32_t kind, std::optional<std::uint32_t> device);

// The name of a CUpti_ActivityMemcpyKind: "Memcpy HtoD".
std::string copy_name(std::uint32_t kind);

// The name of a CUpti_ActivityOverheadKind: "CUPTI buffer flush".
std::string overhead_name(std::uint32_t kind);

// True of a CUDA call that waits for the GPU, by the function's name: "cudaStreamSynchronize".
bool waits(std::string_view function);

}  // namespace paceline::analysis
