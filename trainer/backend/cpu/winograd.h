// 3×3 convolutions by Winograd's algorithm F(4×4, 3×3), for processors with AVX2, for which oneDNN has no such code: 36
// multiplications instead of the direct algorithm's 144 (Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks", CVPR 2016, section 4.2). The gradient of the weights is the transposed algorithm's.
//
// Images and their gradients are fp32 in nChw8c; weights and their gradients in OIhw8i8o. Stride 1, padding 1. The
// results do not depend on the number of threads, and those of an image do not depend on the rest of the batch.
#pragma once

#include <cstddef>

namespace paceline::train::winograd {

struct Shape {
  std::size_t batch, height, width;  // of the output and the input
  std::size_t in, out;               // channels, multiples of 16
};

bool processor_has_it();

// The elements of work memory that any function below needs with `threads` threads.
std::size_t work_size(const Shape& shape, int threads);

// Each runs on `threads` threads of OpenMP. work: 64-byte aligned, of work_size(); its contents do not matter. bias:
// `out` elements; may be null.
void forward(const Shape& shape, const float* source, const float* weights, const float* bias, float* output,
             float* work, int threads);
void backward_data(const Shape& shape, const float* output_gradient, const float* weights, float* source_gradient,
                   float* work, int threads);
// bias_gradient: null without a bias.
void backward_weights(const Shape& shape, const float* source, const float* output_gradient, float* weights_gradient,
                      float* bias_gradient, float* work, int threads);

}  // namespace paceline::train::winograd
