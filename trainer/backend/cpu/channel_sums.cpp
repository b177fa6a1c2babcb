// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cpu/channel_sums.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "trainer/core/vectorize.h"

namespace paceline::train {

ChannelLayout channel_layout(const onednn::Desc& desc) {
  using Tag = dnnl::memory::format_tag;
  const onednn::Dims dims = onednn::dims(desc);
  const auto extent = [&](std::size_t i) { return static_cast<std::size_t>(dims[i]); };
  const auto is = [&](Tag tag) { return onednn::same_layout(desc, {dims, onednn::type(desc), tag}); };
  if (dims.size() == 2 && is(Tag::nc)) return {extent(0), 1, 1, extent(1)};
  if (dims.size() == 4) {
    const std::size_t pixels = extent(2) * extent(3);
    if (is(Tag::nchw)) return {extent(0), extent(1), pixels, 1};
    if (is(Tag::nhwc)) return {extent(0), 1, pixels, extent(1)};
    for (const auto& [tag, lanes] :
         {std::pair{Tag::nChw4c, std::size_t{4}}, {Tag::nChw8c, std::size_t{8}}, {Tag::nChw16c, std::size_t{16}}}) {
      if (is(tag)) return {extent(0), (extent(1) + lanes - 1) / lanes, pixels, lanes};
    }
  }
  throw std::logic_error("batch norm of a tensor whose layout it does not know");
}

namespace kernels {
namespace {

// Calls body(first element, pixels × lanes, first channel) for each sample and block, on all threads.
template <class Body>
void on_all_planes(const ChannelLayout& layout, Samples samples, Body body) {
  const auto planes = static_cast<std::ptrdiff_t>(samples.count * layout.blocks);
#pragma omp parallel for schedule(static) if (planes > 1)
  for (std::ptrdiff_t i = 0; i < planes; ++i) {
    const std::size_t plane = samples.first * layout.blocks + static_cast<std::size_t>(i);
    body(plane * layout.pixels * layout.lanes, plane % layout.blocks * layout.lanes);
  }
}

// Calls body(first element, first channel) for each sample of each block; the samples of a block on one thread, in
// order.
template <class Body>
void by_block(const ChannelLayout& layout, Samples samples, Body body) {
  const auto blocks = static_cast<std::ptrdiff_t>(layout.blocks);
#pragma omp parallel for schedule(static) if (blocks > 1)
  for (std::ptrdiff_t block = 0; block < blocks; ++block) {
    const auto b = static_cast<std::size_t>(block);
    for (std::size_t n = samples.first; n < samples.first + samples.count; ++n) {
      body((n * layout.blocks + b) * layout.pixels * layout.lanes, b * layout.lanes);
    }
  }
}

// Each loop is written once for both types, and compiled for several instruction sets in the functions below.
#define PACELINE_LOOP \
  template <class T>  \
  [[gnu::always_inline]] inline void

PACELINE_LOOP add_moments_loop(const T* __restrict x, std::size_t pixels, std::size_t lanes, double* __restrict sum,
                               double* __restrict squares) {
  for (std::size_t p = 0; p < pixels; ++p) {
    for (std::size_t l = 0; l < lanes; ++l) {
      const double value = load(x[p * lanes + l]);
      sum[l] += value;
      squares[l] += value * value;
    }
  }
}

PACELINE_LOOP add_gradients_loop(const T* __restrict x, const T* y, const T* __restrict dy,
                                 const float* __restrict mean, const float* __restrict inverse, std::size_t pixels,
                                 std::size_t lanes, double* __restrict sum, double* __restrict products) {
  for (std::size_t p = 0; p < pixels; ++p) {
    for (std::size_t l = 0; l < lanes; ++l) {
      const std::size_t i = p * lanes + l;
      const double gradient = y == nullptr || load(y[i]) > 0 ? load(dy[i]) : 0;
      sum[l] += gradient;
      products[l] += gradient * (static_cast<double>(load(x[i])) - mean[l]) * inverse[l];
    }
  }
}

PACELINE_LOOP normalise_plane_loop(const T* __restrict x, std::size_t pixels, std::size_t lanes,
                                   const float* __restrict mean, const float* __restrict factor,
                                   const float* __restrict shift, float least, T* __restrict y) {
  for (std::size_t p = 0; p < pixels; ++p) {
    for (std::size_t l = 0; l < lanes; ++l) {
      const float value = (load(x[p * lanes + l]) - mean[l]) * factor[l] + shift[l];
      store(value < least ? least : value, y[p * lanes + l]);  // keeps NaN
    }
  }
}

PACELINE_LOOP backward_plane_loop(const T* __restrict x, const T* y, const T* __restrict dy, std::size_t pixels,
                                  std::size_t lanes, const float* __restrict mean, const float* __restrict factor,
                                  const float* __restrict offset, const float* __restrict slope, T* __restrict dx) {
  for (std::size_t p = 0; p < pixels; ++p) {
    for (std::size_t l = 0; l < lanes; ++l) {
      const std::size_t i = p * lanes + l;
      const float gradient = y == nullptr || load(y[i]) > 0 ? load(dy[i]) : 0;
      store(factor[l] * (gradient - offset[l] - slope[l] * (load(x[i]) - mean[l])), dx[i]);
    }
  }
}
#undef PACELINE_LOOP

#define PACELINE_PLANES(T)                                                                                    \
  PACELINE_VECTORIZE void add_moments(const T* __restrict x, std::size_t pixels, std::size_t lanes,           \
                                      double* __restrict sum, double* __restrict squares) {                   \
    add_moments_loop(x, pixels, lanes, sum, squares);                                                         \
  }                                                                                                           \
  PACELINE_VECTORIZE void add_gradients(const T* __restrict x, const T* y, const T* __restrict dy,            \
                                        const float* __restrict mean, const float* __restrict inverse,        \
                                        std::size_t pixels, std::size_t lanes, double* __restrict sum,        \
                                        double* __restrict products) {                                        \
    add_gradients_loop(x, y, dy, mean, inverse, pixels, lanes, sum, products);                                \
  }                                                                                                           \
  PACELINE_VECTORIZE void normalise_plane(const T* __restrict x, std::size_t pixels, std::size_t lanes,       \
                                          const float* __restrict mean, const float* __restrict factor,       \
                                          const float* __restrict shift, float least, T* __restrict y) {      \
    normalise_plane_loop(x, pixels, lanes, mean, factor, shift, least, y);                                    \
  }                                                                                                           \
  PACELINE_VECTORIZE void backward_plane(const T* __restrict x, const T* y, const T* __restrict dy,           \
                                         std::size_t pixels, std::size_t lanes, const float* __restrict mean, \
                                         const float* __restrict factor, const float* __restrict offset,      \
                                         const float* __restrict slope, T* __restrict dx) {                   \
    backward_plane_loop(x, y, dy, pixels, lanes, mean, factor, offset, slope, dx);                            \
  }
PACELINE_PLANES(float)
PACELINE_PLANES(Bf16)
#undef PACELINE_PLANES

}  // namespace

template <class T>
void channel_moments(const ChannelLayout& layout, Samples samples, const T* x, double* sum, double* squares) {
  std::fill_n(sum, layout.channels(), 0.0);
  std::fill_n(squares, layout.channels(), 0.0);
  by_block(layout, samples, [&](std::size_t first, std::size_t channel) {
    add_moments(x + first, layout.pixels, layout.lanes, sum + channel, squares + channel);
  });
}

template <class T>
void normalise(const ChannelLayout& layout, Samples samples, const T* x, const float* mean, const float* factor,
               const float* shift, bool relu, T* y) {
  const float least = relu ? 0.0f : -HUGE_VALF;
  on_all_planes(layout, samples, [&](std::size_t first, std::size_t channel) {
    normalise_plane(x + first, layout.pixels, layout.lanes, mean + channel, factor + channel, shift + channel, least,
                    y + first);
  });
}

template <class T>
void channel_gradients(const ChannelLayout& layout, Samples samples, const T* x, const T* y, const T* dy,
                       const float* mean, const float* inverse_deviation, double* sum, double* products) {
  std::fill_n(sum, layout.channels(), 0.0);
  std::fill_n(products, layout.channels(), 0.0);
  by_block(layout, samples, [&](std::size_t first, std::size_t channel) {
    add_gradients(x + first, y ? y + first : y, dy + first, mean + channel, inverse_deviation + channel, layout.pixels,
                  layout.lanes, sum + channel, products + channel);
  });
}

template <class T>
void normalise_backward(const ChannelLayout& layout, Samples samples, const T* x, const T* y, const T* dy,
                        const float* mean, const float* factor, const float* offset, const float* slope, T* dx) {
  on_all_planes(layout, samples, [&](std::size_t first, std::size_t channel) {
    backward_plane(x + first, y ? y + first : y, dy + first, layout.pixels, layout.lanes, mean + channel,
                   factor + channel, offset + channel, slope + channel, dx + first);
  });
}

#define PACELINE_INSTANTIATE(T)                                                                                    \
  template void channel_moments(const ChannelLayout&, Samples, const T*, double*, double*);                        \
  template void normalise(const ChannelLayout&, Samples, const T*, const float*, const float*, const float*, bool, \
                          T*);                                                                                     \
  template void channel_gradients(const ChannelLayout&, Samples, const T*, const T*, const T*, const float*,       \
                                  const float*, double*, double*);                                                 \
  template void normalise_backward(const ChannelLayout&, Samples, const T*, const T*, const T*, const float*,      \
                                   const float*, const float*, const float*, T*);
PACELINE_INSTANTIATE(float)
PACELINE_INSTANTIATE(Bf16)
#undef PACELINE_INSTANTIATE

}  // namespace kernels
}  // namespace paceline::train
