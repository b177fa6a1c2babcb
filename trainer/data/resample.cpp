#include "trainer/data/resample.h"

#include <algorithm>
#include <cmath>

namespace paceline::train {

std::vector<Tap> linear_taps(double begin, double length, std::int64_t count, std::int64_t pixels) {
  const auto end = static_cast<double>(pixels - 1);
  const double low = std::clamp(begin, 0.0, end), high = std::clamp(begin + length - 1, low, end);
  std::vector<Tap> taps(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const double step = length / static_cast<double>(count);
    const double at = std::clamp(begin + (static_cast<double>(i) + 0.5) * step - 0.5, low, high);
    Tap& tap = taps[static_cast<std::size_t>(i)];
    tap.first = static_cast<std::int64_t>(std::floor(at));
    tap.weight = static_cast<float>(at - std::floor(at));
    tap.second = tap.first + (tap.weight > 0 ? 1 : 0);
  }
  return taps;
}

}  // namespace paceline::train
