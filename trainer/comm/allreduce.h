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
};

}  // namespace paceline::train
