#include "analysis/scaling/time_model.h"

namespace paceline::analysis {

std::optional<TimeModel> fit_time_model(std::span<const RunLength> runs) {
  double epochs = 0, seconds = 0;
  for (const auto& run : runs) {
    epochs += run.epochs;
    seconds += run.seconds;
  }
  if (runs.empty()) return std::nullopt;
  epochs /= static_cast<double>(runs.size());
  seconds /= static_cast<double>(runs.size());
  double xx = 0, xy = 0;
  for (const auto& run : runs) {
    xx += (run.epochs - epochs) * (run.epochs - epochs);
    xy += (run.epochs - epochs) * (run.seconds - seconds);
  }
  if (xx == 0) return std::nullopt;
  const double per_epoch = xy / xx;
  return TimeModel{seconds - per_epoch * epochs, per_epoch};
}

}  // namespace paceline::analysis
