// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/bad_images.h"

namespace paceline::train {

bool BadImages::has(std::size_t sample) const {
  const std::lock_guard lock(mutex_);
  return what_.contains(sample);
}

void BadImages::add(std::size_t sample, const std::string& what) {
  {
    const std::lock_guard lock(mutex_);
    if (!what_.emplace(sample, what).second) return;
  }
  report_(what);
}

std::vector<std::uint64_t> BadImages::samples() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> samples;
  for (const auto& [sample, what] : what_) samples.push_back(sample);
  return samples;
}

}  // namespace paceline::train
