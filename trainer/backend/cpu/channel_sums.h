// SPDX-License-Identifier: Apache-2.0
// Per-channel sums over a tensor and element-wise operations with per-channel factors, for the batch norms that oneDNN
// does not have. Tensors are dense, of T, float or Bf16, in any layout with whole channels side by side. Sums are in
// float64, in an order that does not depend on the number of threads.
#pragma once

#include <cstddef>

#include "trainer/backend/cpu/bfloat16.h"
#include "trainer/backend/cpu/onednn.h"

namespace paceline::train {

// Element ((n × blocks + b) × pixels + p) × lanes + l of the array belongs to channel b × lanes + l of sample n.
struct ChannelLayout {
  std::size_t samples = 0, blocks = 0, pixels = 0, lanes = 0;
  std::size_t channels() const { return blocks * lanes; }  // including those that fill up the last block
};

// Of NC, NCHW, NHWC and the blocked nChw4c, nChw8c, nChw16c. Throws std::logic_error for other layouts.
ChannelLayout channel_layout(const onednn::Desc& desc);

// Samples [first, first + count) of a layout.
struct Samples {
  std::size_t first = 0, count = 0;
};

namespace kernels {

// sum[c] = Σ x, squares[c] = Σ x².
template <class T>
void channel_moments(const ChannelLayout& layout, Samples samples, const T* x, double* sum, double* squares);

// y = (x − mean[c]) × factor[c] + shift[c], negative results set to zero with `relu`.
template <class T>
void normalise(const ChannelLayout& layout, Samples samples, const T* x, const float* mean, const float* factor,
               const float* shift, bool relu, T* y);

// sum[c] = Σ dy, products[c] = Σ dy × (x − mean[c]) × inverse_deviation[c]. If y is not null, dy counts only where y >
// 0 (the ReLU's gradient).
template <class T>
void channel_gradients(const ChannelLayout& layout, Samples samples, const T* x, const T* y, const T* dy,
                       const float* mean, const float* inverse_deviation, double* sum, double* products);

// dx = factor[c] × (dy − offset[c] − slope[c] × (x − mean[c])), with y as above.
template <class T>
void normalise_backward(const ChannelLayout& layout, Samples samples, const T* x, const T* y, const T* dy,
                        const float* mean, const float* factor, const float* offset, const float* slope, T* dx);

}  // namespace kernels
}  // namespace paceline::train
