// SPDX-License-Identifier: Apache-2.0
// The types that a network is computed in on a GPU. Weights, their gradients and the batch norms' statistics are always
// fp32; activations and their gradients have the type's storage. Sums are fp32 or wider.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace paceline::train::cuda {

enum class Precision {
  f32,   // fp32 throughout
  tf32,  // stored as fp32; products of convolutions and linear layers round their factors to 11 bits
  bf16,  // 8 bits of mantissa, the range of fp32
  f16    // 11 bits, a small range: gradients are scaled (loss_scale.h)
};

enum class Storage : int { f32, bf16, f16 };

inline Storage storage_of(Precision precision) {
  switch (precision) {
    case Precision::bf16:
      return Storage::bf16;
    case Precision::f16:
      return Storage::f16;
    default:
      return Storage::f32;
  }
}

inline std::size_t bytes_of(Storage storage) { return storage == Storage::f32 ? 4 : 2; }

// Parses a type's name. Throws std::invalid_argument for an unknown name.
inline Precision precision_of(const std::string& name) {
  if (name == "f32") return Precision::f32;
  if (name == "tf32") return Precision::tf32;
  if (name == "bf16") return Precision::bf16;
  if (name == "f16") return Precision::f16;
  throw std::invalid_argument("unknown type '" + name + "': choose one of f32, tf32, bf16, f16");
}

inline const char* name_of(Precision precision) {
  constexpr const char* names[] = {"f32", "tf32", "bf16", "f16"};
  return names[static_cast<int>(precision)];
}

}  // namespace paceline::train::cuda
