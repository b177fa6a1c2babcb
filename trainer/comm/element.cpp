// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/element.h"

#include <cstdint>

#include "trainer/core/cast.h"
#include "trainer/core/error.h"
#include "trainer/core/vectorize.h"

namespace paceline::train {
namespace {

PACELINE_VECTORIZE void add_floats(float* into, const float* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) into[i] += from[i];
}

PACELINE_VECTORIZE void divide_floats(float* values, std::size_t count, float divisor) {
  for (std::size_t i = 0; i < count; ++i) values[i] /= divisor;
}

std::uint16_t* halves(std::byte* values) { return reinterpret_cast<std::uint16_t*>(values); }
const std::uint16_t* halves(const std::byte* values) { return reinterpret_cast<const std::uint16_t*>(values); }

double* doubles(std::byte* values) { return reinterpret_cast<double*>(values); }
const double* doubles(const std::byte* values) { return reinterpret_cast<const double*>(values); }

template <void (*Add)(std::uint16_t*, const std::uint16_t*, std::size_t)>
void add_in_mpi(void* in, void* in_out, int* count, MPI_Datatype*) {
  Add(static_cast<std::uint16_t*>(in_out), static_cast<const std::uint16_t*>(in), static_cast<std::size_t>(*count));
}

}  // namespace

template <auto Add, auto Narrow, auto Widen>
void Element::set_half() {
  constexpr int commutative = 1;
  bytes_ = 2;
  type_ = MPI_UINT16_T;
  MPI_Op_create(add_in_mpi<Add>, commutative, &sum_);
  add_ = [](std::byte* into, const std::byte* from, std::size_t count) { Add(halves(into), halves(from), count); };
  narrow_ = [](std::span<const float> values, float divisor, std::byte* out) { Narrow(values, divisor, halves(out)); };
  widen_ = [](const std::byte* values, std::span<float> out) { Widen(halves(values), out); };
}

Element::Element(const std::string& dtype) {
  if (dtype == "f32") {
    bytes_ = 4;
    type_ = MPI_FLOAT;
    sum_ = MPI_SUM;
    add_ = [](std::byte* into, const std::byte* from, std::size_t count) {
      add_floats(reinterpret_cast<float*>(into), reinterpret_cast<const float*>(from), count);
    };
  } else if (dtype == "f64") {
    bytes_ = 8;
    type_ = MPI_DOUBLE;
    sum_ = MPI_SUM;
    add_ = [](std::byte* into, const std::byte* from, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) doubles(into)[i] += doubles(from)[i];
    };
  } else if (dtype == "f16") {
    set_half<add_half, to_half, from_half>();
  } else if (dtype == "bf16") {
    set_half<add_bfloat16, to_bfloat16, from_bfloat16>();
  } else {
    throw Error("‹allreduce-dtype› " + dtype, "unknown type", "", Status::usage);
  }
}

Element::~Element() {
  if (sum_ != MPI_SUM && sum_ != MPI_OP_NULL) MPI_Op_free(&sum_);
}

void Element::divide(std::byte* values, std::size_t count, float divisor) const {
  if (bytes_ == sizeof(double)) {
    for (std::size_t i = 0; i < count; ++i) doubles(values)[i] /= divisor;
  } else {
    divide_floats(reinterpret_cast<float*>(values), count, divisor);
  }
}

}  // namespace paceline::train
