// SPDX-License-Identifier: Apache-2.0
// Cuts the gradient into buckets that are sent while backward still computes the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/core/slice.h"
#include "trainer/nn/model.h"

namespace paceline::train {

struct Bucket {
  std::vector<Slice> slices;  // of the flat gradient; one slice if the parameters are neighbours
  std::size_t parameters = 0;
  std::size_t values = 0;
};

struct BucketPlan {
  std::vector<Bucket> buckets;  // in the order of sending
  std::vector<std::size_t> of;  // parameter → its bucket
};

// order: all parameters in the order in which their gradients arrive. A bucket takes parameters until the next one
// would exceed its limit: `first_bytes` for the first bucket, `bytes` for the others. A larger parameter is a bucket of
// its own. The first bucket is small so that the first gradients are sent early (PyTorch's DistributedDataParallel: 1
// MiB, then 25 MiB). bytes_per_value: on the wire.
BucketPlan plan_buckets(Model& model, const std::vector<std::uint64_t>& order, std::size_t first_bytes,
                        std::size_t bytes, std::size_t bytes_per_value);

}  // namespace paceline::train
