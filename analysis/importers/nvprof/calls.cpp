// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/nvprof/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace paceline::analysis {
namespace nvprof_calls {

struct Call {
  bool driver = false;
  std::int64_t number = 0;
  const char* name = "";
};

// CMake makes the rows from CUPTI's headers, where they are installed. Numbers never change their meaning.
constexpr Call table[] = {
    {false, 0, ""},
#include "cupti_calls.inc"
};

}  // namespace nvprof_calls

std::string cuda_call_name(bool driver, std::int64_t number) {
  const auto* const found = std::ranges::find_if(nvprof_calls::table, [&](const nvprof_calls::Call& call) {
    return call.driver == driver && call.number == number && *call.name != '\0';
  });
  if (found != std::end(nvprof_calls::table)) return found->name;
  return fmt::format("CUDA {} call {}", driver ? "driver" : "runtime", number);
}

}  // namespace paceline::analysis
