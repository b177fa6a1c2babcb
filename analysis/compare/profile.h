// SPDX-License-Identifier: Apache-2.0
// What a run spends its steps on: one value for each iteration and quantity, so that two runs can be compared.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/run/run_analysis.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

enum class QuantityType : std::uint8_t { step, phase, range, call, device };

// "step", "phase", "range", "call", "device": the key in JSON.
const char* type_name(QuantityType type);

// Time in an iteration, in seconds, mean over ranks: of the whole step; of a phase of the main thread; inside the
// main thread's ranges of one name (outermost ones where a name nests in itself); inside its calls of one function of
// MPI, NCCL or CUDA; of the kernels or copies of one name on the device, started within the iteration.
struct Quantity {
  QuantityType type = QuantityType::step;
  std::string name;  // "forward"; of a range its name, with its domain in front where it has one: "domain: name"
  std::vector<double> seconds;  // of each steady iteration that all ranks finished, in their order
  double count = 0;             // of ranges, calls and kernels in all of these, mean over ranks
};

struct RunProfile {
  RunAnalysis run;
  std::vector<Quantity> quantities;  // the step first, then phases, then the others, the largest first
  // Without iterations: ranges, calls and kernels over the whole run, with one value each.
  std::vector<Quantity> totals = {};
  std::set<std::pair<QuantityType, std::string>> left_out = {};  // those that take too little time
};

// The quantities of the run's steady iterations; none if it has none. Ranges, calls and kernels that take less than
// 0.05 % of the step are left out, and at most 400 are kept. Cost: linear in the slices of main threads and streams,
// and in quantities × iterations.
RunProfile profile_run(const Trace& trace, const std::string& path);

}  // namespace paceline::analysis
