// SPDX-License-Identifier: Apache-2.0
#include "trainer/updaters/buckets.h"

#include <algorithm>

#include "trainer/updaters/gradient_pass.h"

namespace paceline::train {

BucketPlan plan_buckets(Model& model, const std::vector<std::uint64_t>& order, std::size_t first_bytes,
                        std::size_t bytes, std::size_t bytes_per_value) {
  BucketPlan plan;
  plan.of.resize(order.size());
  for (const std::uint64_t parameter : order) {
    const auto [first, values] = slice_of_parameter(model, parameter);
    const std::size_t limit = plan.buckets.size() == 1 ? std::min(first_bytes, bytes) : bytes;
    if (plan.buckets.empty() || (plan.buckets.back().values + values) * bytes_per_value > limit) {
      plan.buckets.emplace_back();
    }
    Bucket& bucket = plan.buckets.back();
    bucket.slices.push_back({first, values});
    bucket.values += values;
    ++bucket.parameters;
    plan.of[parameter] = plan.buckets.size() - 1;
  }
  for (Bucket& bucket : plan.buckets) {  // join neighbouring slices
    std::ranges::sort(bucket.slices, {}, &Slice::first);
    std::vector<Slice> joined;
    for (const Slice& slice : bucket.slices) {
      if (!joined.empty() && joined.back().first + joined.back().count == slice.first) {
        joined.back().count += slice.count;
      } else {
        joined.push_back(slice);
      }
    }
    bucket.slices = std::move(joined);
  }
  return plan;
}

}  // namespace paceline::train
