// What an allreduce algorithm is: it knows neither gradients nor casts, only numbers of one type in host memory.
#pragma once

#include <cstddef>

#include "trainer/comm/element.h"
#include "trainer/core/slice.h"

namespace paceline::train {

// The numbers of this rank. At most 2^30, so that MPI's counts, of type int, can express them and their sums.
struct Values {
  const Element& element;
  std::byte* data;
  std::size_t count;
  float divisor;  // of the sums; 1 for the 16-bit types, which are divided before the cast

  Slice all() const { return {0, count}; }
  std::byte* at(std::size_t position) const { return data + position * element.bytes(); }

  // `from`: one number for each position of the slice.
  void add(Slice slice, const std::byte* from) const { element.add(at(slice.first), from, slice.count); }

  // Where a rank has the complete sums of a slice it divides them, once, before the other ranks get them.
  void divide(Slice slice) const {
    if (divisor != 1) element.divide(at(slice.first), slice.count, divisor);
  }
};

class Allreduce {
 public:
  virtual ~Allreduce() = default;

  // Replaces the values by sum over the ranks ÷ divisor; on every rank the same bits, as each sum is computed on one
  // rank and copied, or in one order everywhere. A collective call; `count`, `element`, `divisor` are the same on all.
  virtual void reduce(const Values& values) = 0;

  // Whether the gradient is to be handed over parameter by parameter.
  virtual bool by_segment() const { return false; }
};

}  // namespace paceline::train
