// SPDX-License-Identifier: Apache-2.0
// Feeds hostile text to the reader of tables of runs and computes the scaling section of what it accepts. With clang it
// is a libFuzzer program (fuzz_runs_table), with any compiler it replays the corpus (replay_fuzz_runs_table).
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "analysis/scaling/runs_table.h"
#include "profiler/format/error.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const std::optional<paceline::analysis::Interval>& interval) {
  require(!interval || (interval->low <= interval->high && std::isfinite(interval->low)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline::analysis;
  std::vector<ScalingRun> runs;
  try {
    runs = parse_runs_table({reinterpret_cast<const char*>(data), size}, "t.csv");
  } catch (const paceline::Error& error) {
    require(std::string_view(error.what()).starts_with("t.csv:"));
    return 0;
  }
  require(!runs.empty());
  for (const double noise : {0.0, 0.01}) {
    const Scaling scaling = scaling_of(runs, {{}, noise > 0 ? std::optional(noise) : std::nullopt});
    require(scaling.point_of_run.size() == runs.size());
    for (const auto& point : scaling.points) check(point.speedup_ci95);
    for (const auto& fit : scaling.fits) {
      require(fit.serial_fraction >= 0 && fit.serial_fraction <= 1);
      check(fit.ci95);
      check(fit.kappa_ci95);
    }
    for (const auto& row : scaling.time_model) {
      require(row.model.fixed_s >= 0 && row.model.per_epoch_s > 0);
      check(row.fixed_ci95);
    }
  }
  return 0;
}
