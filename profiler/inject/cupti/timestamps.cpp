// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/cupti/timestamps.h"

namespace paceline::inject::cupti {

void Timestamps::add(std::uint64_t ns, std::uint64_t ticks) { readings_[count_++ % kept] = {ns, ticks}; }

std::uint64_t Timestamps::from(const Reading& reading, std::uint64_t ns, double slope) const {
  const auto distance = static_cast<std::int64_t>(ns - reading.ns);
  const auto ticks = static_cast<std::int64_t>(static_cast<double>(distance) * slope);
  return reading.ticks + static_cast<std::uint64_t>(ticks);
}

std::uint64_t Timestamps::ticks(std::uint64_t ns) const {
  if (count_ == 0) return 0;
  const std::size_t oldest = count_ > kept ? count_ - kept : 0;
  std::size_t before = count_ - 1;
  while (before > oldest && reading(before).ns > ns) --before;
  const Reading& left = reading(before);
  if (before + 1 == count_ || left.ns > ns) return from(left, ns, ticks_per_ns_);
  const Reading& right = reading(before + 1);
  const double slope = static_cast<double>(right.ticks - left.ticks) / static_cast<double>(right.ns - left.ns);
  const bool was_set = !(slope > ticks_per_ns_ * 0.999 && slope < ticks_per_ns_ * 1.001);
  return from(left, ns, was_set ? ticks_per_ns_ : slope);
}

}  // namespace paceline::inject::cupti
