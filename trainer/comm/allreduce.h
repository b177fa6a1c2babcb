// SPDX-License-Identifier: Apache-2.0
// The interface of an allreduce algorithm on host memory. It works on numbers of one type and knows neither gradients
// nor casts.
#pragma once

#include <cstddef>

#include "trainer/comm/element.h"
#include "trainer/core/slice.h"

namespace paceline::train {

// The numbers of this rank. There are at most 2^30, so that MPI's counts, of type int, can express them and their sums.
struct Values {
  const Element& element;
  std::byte* data;
  std::size_t count;
  float divisor;  // of the sums; 1 for the 16-bit types, which are divided before the cast

  Slice all() const { return {0, count}; }
  std::byte* at(std::size_t position) const { return data + position * element.bytes(); }

  // from: one number for each position of the slice.
  void add(Slice slice, const std::byte* from) const { element.add(at(slice.first), from, slice.count); }

  // Divides the sums of a slice. The rank that has the complete sums calls it once, before the other ranks get them.
  void divide(Slice slice) const {
    if (divisor != 1) element.divide(at(slice.first), slice.count, divisor);
  }
};

class Allreduce {
 public:
  virtual ~Allreduce() = default;

  // Replaces the values by the sum over the ranks ÷ divisor. Every rank gets the same bits, because each sum is
  // computed on one rank and copied, or in the same order everywhere. A collective call with the same `count`,
  // `element` and `divisor` on all ranks.
  virtual void reduce(const Values& values) = 0;

  // Whether reduce() must be called for one parameter at a time.
  virtual bool by_segment() const { return false; }

  // The two halves of an allreduce, if has_halves(). Each rank owns a slice of the values, and the slices of all ranks
  // cover them. reduce_scatter() replaces the rank's own slice by the sums ÷ divisor and leaves the other positions
  // undefined. all_gather() replaces every other slice by its owner's. One after the other they give the bits of
  // reduce() if that adds in the same order, as `ring` does. Collective calls.
  virtual bool has_halves() const { return false; }
  virtual Slice own_slice(std::size_t count) const { return {0, count}; }
  virtual void reduce_scatter(const Values&) {}
  virtual void all_gather(const Values&) {}
};

}  // namespace paceline::train
