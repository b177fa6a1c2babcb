// SPDX-License-Identifier: Apache-2.0
// 3×3 convolutions by Winograd's algorithm F(4×4, 3×3): 36 multiplications instead of the direct algorithm's 144 (Lavin
// and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016, section 4.2). The gradient of the weights
// is the transposed algorithm's. oneDNN has no such code for AVX2, and oneDNN 3 has none for AVX-512.
//
// Images and their gradients are fp32 or bf16, in blocks of channels; weights, their gradients and all that is computed
// are fp32. (Products of factors in bf16 have four times the error of the direct algorithm in bf16: 1.06 % of the
// result with 256 channels instead of 0.25 %.) Stride 1, padding 1. The results do not depend on the number of threads,
// and those of an image do not depend on the rest of the batch.
#pragma once

#include <cstddef>
#include <span>

namespace paceline::train::winograd {

struct Shape {
  std::size_t batch, height, width;  // of the output and the input
  std::size_t in, out;               // channels, multiples of 16
};

// The algorithm as compiled for one instruction set and one size of blocks.
struct Code {
  const char* name;
  std::size_t block;  // channels in a block: 8 for nChw8c and OIhw8i8o, 16 for nChw16c and OIhw16i16o
  bool bf16;          // the type of images and their gradients, else fp32
  bool (*runs_here)();

  // The elements of work memory that any function below needs with `threads` threads.
  std::size_t (*work_size)(const Shape& shape, int threads);

  // Each runs on `threads` threads of OpenMP. work: 64-byte aligned, of work_size(); its contents do not matter. bias:
  // `out` elements; may be null.
  void (*forward)(const Shape& shape, const void* source, const float* weights, const float* bias, void* output,
                  float* work, int threads);
  void (*backward_data)(const Shape& shape, const void* output_gradient, const float* weights, void* source_gradient,
                        float* work, int threads);
  // bias_gradient: null without a bias.
  void (*backward_weights)(const Shape& shape, const void* source, const void* output_gradient, float* weights_gradient,
                           float* bias_gradient, float* work, int threads);
};

std::span<const Code* const> codes();  // all that were compiled, the fastest of each size of blocks first

// The fastest that this processor runs, or null.
const Code* code_for_blocks_of(std::size_t channels, bool bf16 = false);

}  // namespace paceline::train::winograd
