#include "trainer/backend/cpu/channel_sums.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "trainer/nn/vectorize.h"

namespace paceline::train {

ChannelLayout channel_layout(const onednn::Desc& desc) {
  using Tag = dnnl::memory::format_tag;
  const onednn::Dims dims = onednn::dims(desc);
  const auto extent = [&](std::size_t i) { return static_cast<std::size_t>(dims[i]); };
  const auto is = [&](Tag tag) { return onednn::same_layout(desc, {dims, dnnl::memory::data_type::f32, tag}); };
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

PACELINE_VECTORIZE void add_moments(const float* __restrict x, std::size_t pixels, std::size_t lanes,
                                    double* __restrict sum, double* __restrict squares) {
  for (std::size_t p = 0; p < pixels; ++p) {
    for (std::size_t l = 0; l < lanes; ++l) {
      const double value = x[p * lanes + l];
      sum[l] += value;
      squares[l] += value * value;
    }
  }
}

PACELINE_VECTORIZE void add_gradients(const float* __restrict x, const float* y, const float* __restrict dy,
                                      const float* __restrict mean, const float* __restrict inverse, std::size_t pixels,
                                      std::size_t lanes, double* __restrict sum, double* __restrict products) {
  for (std::size_t p = 0; p < pixels; ++p) {
    for (std::size_t l = 0; l < lanes; ++l) {
      const std::size_t i = p * lanes + l;
      const double gradient = y == nullptr || y[i] > 0 ? dy[i] : 0;
      sum[l] += gradient;
      products[l] += gradient * (static_cast<double>(x[i]) - mean[l]) * inverse[l];
    }
  }
}

PACELINE_VECTORIZE void normalise_plane(const float* __restrict x, std::size_t pixels, std::size_t lanes,
                                        const float* __restrict mean, const float* __restrict factor,
                                        const float* __restrict shift, float least, float* __restrict y) {
  for (std::size_t p = 0; p < pixels; ++p) {
    for (std::size_t l = 0; l < lanes; ++l) {
      const float value = (x[p * lanes + l] - mean[l]) * factor[l] + shift[l];
      y[p * lanes + l] = value < least ? least : value;  // keeps NaN
    }
  }
}

PACELINE_VECTORIZE void backward_plane(const float* __restrict x, const float* y, const float* __restrict dy,
                                       std::size_t pixels, std::size_t lanes, const float* __restrict mean,
                                       const float* __restrict factor, const float* __restrict offset,
                                       const float* __restrict slope, float* __restrict dx) {
  for (std::size_t p = 0; p < pixels; ++p) {
    for (std::size_t l = 0; l < lanes; ++l) {
      const std::size_t i = p * lanes + l;
      const float gradient = y == nullptr || y[i] > 0 ? dy[i] : 0;
      dx[i] = factor[l] * (gradient - offset[l] - slope[l] * (x[i] - mean[l]));
    }
  }
}

}  // namespace

void channel_moments(const ChannelLayout& layout, Samples samples, const float* x, double* sum, double* squares) {
  std::fill_n(sum, layout.channels(), 0.0);
  std::fill_n(squares, layout.channels(), 0.0);
  by_block(layout, samples, [&](std::size_t first, std::size_t channel) {
    add_moments(x + first, layout.pixels, layout.lanes, sum + channel, squares + channel);
  });
}

void normalise(const ChannelLayout& layout, Samples samples, const float* x, const float* mean, const float* factor,
               const float* shift, bool relu, float* y) {
  const float least = relu ? 0.0f : -HUGE_VALF;
  on_all_planes(layout, samples, [&](std::size_t first, std::size_t channel) {
    normalise_plane(x + first, layout.pixels, layout.lanes, mean + channel, factor + channel, shift + channel, least,
                    y + first);
  });
}

void channel_gradients(const ChannelLayout& layout, Samples samples, const float* x, const float* y, const float* dy,
                       const float* mean, const float* inverse_deviation, double* sum, double* products) {
  std::fill_n(sum, layout.channels(), 0.0);
  std::fill_n(products, layout.channels(), 0.0);
  by_block(layout, samples, [&](std::size_t first, std::size_t channel) {
    add_gradients(x + first, y ? y + first : nullptr, dy + first, mean + channel, inverse_deviation + channel,
                  layout.pixels, layout.lanes, sum + channel, products + channel);
  });
}

void normalise_backward(const ChannelLayout& layout, Samples samples, const float* x, const float* y, const float* dy,
                        const float* mean, const float* factor, const float* offset, const float* slope, float* dx) {
  on_all_planes(layout, samples, [&](std::size_t first, std::size_t channel) {
    backward_plane(x + first, y ? y + first : nullptr, dy + first, layout.pixels, layout.lanes, mean + channel,
                   factor + channel, offset + channel, slope + channel, dx + first);
  });
}

}  // namespace kernels
}  // namespace paceline::train
