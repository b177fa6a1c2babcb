// The time of a run: T(N, epochs) = fixed(N) + epochs × epoch(N). Runs of two lengths give both terms.
#pragma once

#include <optional>
#include <span>

namespace paceline::analysis {

struct RunLength {
  double epochs = 0;
  double seconds = 0;
};

struct TimeModel {
  double fixed_s = 0;  // before and beside training: the same for any number of epochs
  double per_epoch_s = 0;
  double seconds(double epochs) const { return fixed_s + epochs * per_epoch_s; }
};

// Least squares through the runs; nothing where they have fewer than two different lengths.
std::optional<TimeModel> fit_time_model(std::span<const RunLength> runs);

}  // namespace paceline::analysis
