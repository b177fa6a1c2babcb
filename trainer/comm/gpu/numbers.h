// SPDX-License-Identifier: Apache-2.0
// The kernels of communicators: casts and sums on the GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

namespace paceline::train::nccl {

enum class Type { f32, f16, bf16 };

// "f32", "f16", "bf16". Throws Error (usage) for an unknown name.
Type type_of(const std::string& dtype);
inline std::size_t bytes_of(Type type) { return type == Type::f32 ? 4 : 2; }

// All queue their work in the stream and return. They give the same bits as the functions of core/cast.h, except for
// the payloads of NaNs.

// values[i] /= divisor
void divide(float* values, std::size_t count, float divisor, cudaStream_t stream);

// out[i] = values[i] / divisor, rounded to fp32 and to the type. f16, bf16.
void narrow(Type type, const float* values, std::size_t count, float divisor, void* out, cudaStream_t stream);
void widen(Type type, const void* values, std::size_t count, float* out, cudaStream_t stream);

// into[i] += from[i], in fp32, rounded to the type.
void add(Type type, void* into, const void* from, std::size_t count, cudaStream_t stream);

}  // namespace paceline::train::nccl
