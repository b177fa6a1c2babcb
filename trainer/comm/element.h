// SPDX-License-Identifier: Apache-2.0
// The number types that gradients are sent in, and how MPI and our own loops add them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>
#include <string>

namespace paceline::train {

// One type: f32, f16 (IEEE 754 binary16), bf16 (the upper half of an fp32), or f64, which is used to compare algorithms
// with exact mathematics. MPI has no 16-bit floating-point types: the values are sent as integers of two bytes with an
// operation of our own, which adds in fp32 and rounds to nearest even. That gives the correctly rounded sum, because
// fp32 has more than twice the digits plus two (Figueroa, 1995).
class Element {
 public:
  // Throws Error (usage) for an unknown name. MPI must be initialised.
  explicit Element(const std::string& dtype);
  ~Element();
  Element(const Element&) = delete;
  Element& operator=(const Element&) = delete;

  std::size_t bytes() const { return bytes_; }
  MPI_Datatype type() const { return type_; }
  MPI_Op sum() const { return sum_; }

  // into[i] += from[i]
  void add(std::byte* into, const std::byte* from, std::size_t count) const { add_(into, from, count); }

  // f32 and f64 only: values[i] /= divisor
  void divide(std::byte* values, std::size_t count, float divisor) const;

  // 16-bit types only: narrow() rounds values ÷ divisor to this type, widen() converts back.
  void narrow(std::span<const float> values, float divisor, std::byte* out) const { narrow_(values, divisor, out); }
  void widen(const std::byte* values, std::span<float> out) const { widen_(values, out); }

 private:
  template <auto Add, auto Narrow, auto Widen>
  void set_half();  // a type of 16 bits with these functions of core/cast.h

  std::size_t bytes_ = 0;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  MPI_Op sum_ = MPI_OP_NULL;
  void (*add_)(std::byte*, const std::byte*, std::size_t) = nullptr;
  void (*narrow_)(std::span<const float>, float, std::byte*) = nullptr;
  void (*widen_)(const std::byte*, std::span<float>) = nullptr;
};

}  // namespace paceline::train
