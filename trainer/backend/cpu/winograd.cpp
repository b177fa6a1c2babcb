#include "trainer/backend/cpu/winograd.h"

#include <algorithm>
#include <utility>

#ifdef _OPENMP
#include <omp.h>
#endif

#if defined(__x86_64__)
#include "trainer/backend/cpu/winograd_transforms.h"
#endif

// The algorithm takes the tiles of the batch, 4×4 pixels each, in chunks that fit the shared cache. Of each chunk the
// 6×6 pixels around every tile are transformed, all channels of a tile together, into 36 matrices of tiles × channels.
// Then each thread takes 16 output channels at a time, transforms their weights, multiplies the 36 pairs of matrices
// and transforms the products back. Transformed weights are thus never kept: they are four times as large as weights.

namespace paceline::train::winograd {

#if defined(__x86_64__)

namespace {

constexpr std::size_t group = 48;  // tiles whose products a thread computes at once: they fit its second-level cache
constexpr std::size_t lanes = 16;  // output channels at once, two vectors
constexpr std::size_t pad = 16;    // keeps rows and matrices apart in the cache's sets
constexpr std::size_t most_groups =
    2;  // of a chunk: few groups fit the caches, many make the transforms of the weights rarer

std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

// The matrices of a chunk: [group][matrix][tile][channel].
struct Planes {
  std::size_t channels, matrices;
  std::size_t row() const { return channels + pad; }
  std::size_t matrix() const { return group * row() + pad; }
  std::size_t size() const { return matrices * matrix(); }  // of a group
};

// For many threads, pieces of 16 channels are too few, so each piece is halved.
std::size_t parts_of(const Shape& s, int threads) {
  return static_cast<std::size_t>(threads) * lanes > s.out ? most_groups : 1;
}

constexpr std::size_t products_matrix = group * lanes + pad;
std::size_t weights_matrix(std::size_t channels) { return channels * lanes + pad; }

struct Tiling {
  std::size_t rows, columns, total, groups;  // groups: of a chunk
  explicit Tiling(const Shape& s)
      : rows(divide_up(s.height, 4)),
        columns(divide_up(s.width, 4)),
        total(s.batch * rows * columns),
        groups(std::min(most_groups, divide_up(total, group))) {}
  std::size_t chunk() const { return groups * group; }
};

// The position of a tile in a tensor.
struct Place {
  std::size_t first;    // element of channel 0 at row 0, column 0 of its image
  std::ptrdiff_t y, x;  // of the tile's first pixel
};

Place place_of(const Shape& s, const Tiling& tiling, std::size_t channels, std::size_t tile) {
  const std::size_t per_image = tiling.rows * tiling.columns, image = tile / per_image, at = tile % per_image;
  return {image * channels * s.height * s.width, static_cast<std::ptrdiff_t>(at / tiling.columns * 4),
          static_cast<std::ptrdiff_t>(at % tiling.columns * 4)};
}

// Reads N×N pixels of 8 channels from (y, x); those outside of the image are zero.
template <int N>
PACELINE_AVX2 inline void load_pixels(const Shape& s, const float* plane, std::ptrdiff_t y, std::ptrdiff_t x,
                                      __m256 (&pixels)[N][N]) {
  const auto height = static_cast<std::ptrdiff_t>(s.height), width = static_cast<std::ptrdiff_t>(s.width);
  if (y >= 0 && x >= 0 && y + N <= height && x + N <= width) {
    for (int r = 0; r < N; ++r) {
      for (int c = 0; c < N; ++c) pixels[r][c] = _mm256_loadu_ps(plane + ((y + r) * width + x + c) * 8);
    }
    return;
  }
  for (int r = 0; r < N; ++r) {
    for (int c = 0; c < N; ++c) {
      const bool inside = y + r >= 0 && y + r < height && x + c >= 0 && x + c < width;
      pixels[r][c] = inside ? _mm256_loadu_ps(plane + ((y + r) * width + x + c) * 8) : _mm256_setzero_ps();
    }
  }
}

// Transforms all channels of one tile of the source into the 36 matrices. to: the tile's row in the first matrix.
PACELINE_AVX2 void transform_source(const Shape& s, const Planes& planes, const float* source, const Place& place,
                                    float* to) {
  for (std::size_t c = 0; c < planes.channels; c += 8) {
    __m256 pixels[6][6], transformed[6][6];
    load_pixels<6>(s, source + place.first + c * s.height * s.width, place.y - 1, place.x - 1, pixels);
    both_ways<6, 6>(source_transform, pixels, transformed);
    for (std::size_t f = 0; f < 36; ++f) _mm256_storeu_ps(to + f * planes.matrix() + c, transformed[f / 6][f % 6]);
  }
}

// Transforms all channels of one tile of the output's gradient. A 37th matrix gets the sums of the tile's pixels.
PACELINE_AVX2 void transform_gradient(const Shape& s, const Planes& planes, const float* gradient, const Place& place,
                                      float* to) {
  for (std::size_t c = 0; c < planes.channels; c += 8) {
    __m256 pixels[4][4], transformed[6][6];
    load_pixels<4>(s, gradient + place.first + c * s.height * s.width, place.y, place.x, pixels);
    both_ways<4, 6>(gradient_transform, pixels, transformed);
    for (std::size_t f = 0; f < 36; ++f) _mm256_storeu_ps(to + f * planes.matrix() + c, transformed[f / 6][f % 6]);
    __m256 sum = _mm256_setzero_ps();
    for (const auto& row : pixels) {
      for (const __m256 pixel : row) sum = _mm256_add_ps(sum, pixel);
    }
    _mm256_storeu_ps(to + 36 * planes.matrix() + c, sum);
  }
}

// The position in OIhw8i8o of 8 output channels, from `out` on, of an input channel; taps are 64 elements apart.
std::size_t weights_at(std::size_t channels, std::size_t out, std::size_t in) {
  return (out / 8 * channels + in / 8 * 8) * 72 + in % 8 * 8;
}

// Transforms the weights of 16 output channels, from `first` on, into [matrix][input channel][16]. channels: of the
// input.
PACELINE_AVX2 void transform_weights(const float* weights, std::size_t channels, std::size_t first, float* to) {
  for (std::size_t i = 0; i < channels; ++i) {
    for (std::size_t half = 0; half < 2; ++half) {
      const float* from = weights + weights_at(channels, first + half * 8, i);
      __m256 taps[3][3], transformed[6][6];
      for (std::size_t k = 0; k < 9; ++k) taps[k / 3][k % 3] = _mm256_loadu_ps(from + k * 64);
      both_ways<3, 6>(weights_transform, taps, transformed);
      float* row = to + i * lanes + half * 8;
      for (std::size_t f = 0; f < 36; ++f) {
        _mm256_storeu_ps(row + f * weights_matrix(channels), transformed[f / 6][f % 6]);
      }
    }
  }
}

// The same for the gradient of the source, a convolution with the weights turned round, whose outputs are the inputs
// from `first` on. in, out: channels of the forward convolution.
PACELINE_AVX2 void transform_turned_weights(const float* weights, std::size_t in, std::size_t out, std::size_t first,
                                            float* to) {
  for (std::size_t o = 0; o < out; o += 8) {
    for (std::size_t half = 0; half < 2; ++half) {
      const float* from = weights + weights_at(in, o, first + half * 8);
      __m256 by_output[9][8];  // [tap][output channel], vectors of input channels
      for (std::size_t k = 0; k < 9; ++k) transpose(from + (8 - k) * 64, by_output[k]);
      for (std::size_t lane = 0; lane < 8; ++lane) {
        __m256 taps[3][3], transformed[6][6];
        for (std::size_t k = 0; k < 9; ++k) taps[k / 3][k % 3] = by_output[k][lane];
        both_ways<3, 6>(weights_transform, taps, transformed);
        float* row = to + (o + lane) * lanes + half * 8;
        for (std::size_t f = 0; f < 36; ++f) _mm256_storeu_ps(row + f * weights_matrix(out), transformed[f / 6][f % 6]);
      }
    }
  }
}

// Multiplies Rows rows with a matrix of 16 columns: c[r][·] = Σₖ a[r × row + k × step] b[k × b_row + ·]. add: adds to
// c.
template <int Rows>
PACELINE_AVX2 inline void multiply_block(const float* a, std::size_t row, std::size_t step, const float* b,
                                         std::size_t b_row, std::size_t count, float* c, bool add) {
  __m256 sums[Rows][2];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    sums[r][0] = add ? _mm256_loadu_ps(c + r * lanes) : _mm256_setzero_ps();
    sums[r][1] = add ? _mm256_loadu_ps(c + r * lanes + 8) : _mm256_setzero_ps();
  }
  for (std::size_t k = 0; k < count; ++k) {
    const __m256 left = _mm256_loadu_ps(b + k * b_row), right = _mm256_loadu_ps(b + k * b_row + 8);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < Rows; ++r) {
      const __m256 factor = _mm256_broadcast_ss(a + r * row + k * step);
      sums[r][0] = _mm256_fmadd_ps(factor, left, sums[r][0]);
      sums[r][1] = _mm256_fmadd_ps(factor, right, sums[r][1]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    _mm256_storeu_ps(c + r * lanes, sums[r][0]);
    _mm256_storeu_ps(c + r * lanes + 8, sums[r][1]);
  }
}

// The same for any number of rows.
PACELINE_AVX2 void multiply_rows(std::size_t rows, const float* a, std::size_t row, std::size_t step, const float* b,
                                 std::size_t b_row, std::size_t count, float* c, bool add) {
  std::size_t r = 0;
  for (; r + 6 <= rows; r += 6) multiply_block<6>(a + r * row, row, step, b, b_row, count, c + r * lanes, add);
  for (; r + 2 <= rows; r += 2) multiply_block<2>(a + r * row, row, step, b, b_row, count, c + r * lanes, add);
  for (; r < rows; ++r) multiply_block<1>(a + r * row, row, step, b, b_row, count, c + r * lanes, add);
}

// Writes 16 channels of one tile of the output, from `channel` on. from: the tile's row in the first matrix of
// products.
PACELINE_AVX2 void transform_output(const Shape& s, const Place& place, const float* from, const float* bias,
                                    std::size_t channel, float* output) {
  for (std::size_t half = 0; half < lanes; half += 8) {
    __m256 products[6][6], pixels[4][4];
    for (std::size_t f = 0; f < 36; ++f) products[f / 6][f % 6] = _mm256_loadu_ps(from + f * products_matrix + half);
    both_ways<6, 4>(output_transform, products, pixels);
    const __m256 shift = bias == nullptr ? _mm256_setzero_ps() : _mm256_loadu_ps(bias + channel + half);
    float* plane = output + place.first + (channel + half) * s.height * s.width;
    const auto y = static_cast<std::size_t>(place.y), x = static_cast<std::size_t>(place.x);
    for (std::size_t r = 0; r < 4 && y + r < s.height; ++r) {
      for (std::size_t c = 0; c < 4 && x + c < s.width; ++c) {
        _mm256_storeu_ps(plane + ((y + r) * s.width + x + c) * 8, _mm256_add_ps(pixels[r][c], shift));
      }
    }
  }
}

// The weights' gradient of 16 output channels, from `channel` on, and `inputs` input channels, from `first` on, from
// the products [matrix][input channel][16].
PACELINE_AVX2 void transform_weights_gradient(const float* products, std::size_t channels, std::size_t inputs,
                                              std::size_t first, std::size_t channel, bool add, float* gradient) {
  for (std::size_t i = 0; i < inputs; ++i) {
    for (std::size_t half = 0; half < 2; ++half) {
      __m256 of_tile[6][6], taps[3][3];
      const float* row = products + i * lanes + half * 8;
      for (std::size_t f = 0; f < 36; ++f) of_tile[f / 6][f % 6] = _mm256_loadu_ps(row + f * weights_matrix(inputs));
      both_ways<6, 3>(weights_gradient_transform, of_tile, taps);
      float* to = gradient + weights_at(channels, channel + half * 8, first + i);
      for (std::size_t k = 0; k < 9; ++k) {
        const __m256 tap = taps[k / 3][k % 3];
        _mm256_storeu_ps(to + k * 64, add ? _mm256_add_ps(_mm256_loadu_ps(to + k * 64), tap) : tap);
      }
    }
  }
}

// sums[·] = Σ of the rows' first 16 elements. add: adds to sums.
void add_rows(std::size_t rows, const float* from, std::size_t row, float* sums, bool add) {
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    float sum = add ? sums[lane] : 0;
    for (std::size_t r = 0; r < rows; ++r) sum += from[r * row + lane];
    sums[lane] = sum;
  }
}

int this_thread() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

// Work memory: the source's planes, the gradient's, then each thread's weights and products.
struct Work {
  Planes source, gradient;
  std::size_t weights, thread, total;
  Work(const Shape& s, const Tiling& tiling, int threads)
      : source{s.in, 36},
        gradient{s.out, 37},
        weights(36 * weights_matrix(std::max(s.in, s.out))),
        thread(weights + 36 * products_matrix),
        total(tiling.groups * (source.size() + gradient.size()) + static_cast<std::size_t>(threads) * thread) {}
};

// output = source convolved with the weights that transform(first output channel, to) gives.
template <class Transform>
void convolve(const Shape& s, const float* source, const float* bias, float* output, float* work, int threads,
              Transform transform) {
  const Tiling tiling(s);
  const Work sizes(s, tiling, threads);
  const Planes& planes = sizes.source;
  float* const of_threads = work + tiling.groups * planes.size();
  const std::size_t parts = parts_of(s, threads);
#pragma omp parallel num_threads(threads)
  {
    float* const weights = of_threads + static_cast<std::size_t>(this_thread()) * sizes.thread;
    float* const products = weights + sizes.weights;
    for (std::size_t begin = 0; begin < tiling.total; begin += tiling.chunk()) {
      const std::size_t tiles = std::min(tiling.chunk(), tiling.total - begin);
#pragma omp for schedule(static)
      for (std::size_t t = 0; t < tiles; ++t) {
        transform_source(s, planes, source, place_of(s, tiling, s.in, begin + t),
                         work + t / group * planes.size() + t % group * planes.row());
      }
#pragma omp for schedule(dynamic)
      for (std::size_t item = 0; item < s.out / lanes * parts; ++item) {
        const std::size_t channel = item / parts * lanes;
        transform(channel, weights);
        for (std::size_t g = item % parts; g * group < tiles; g += parts) {
          const std::size_t rows = std::min(group, tiles - g * group);
          for (std::size_t f = 0; f < 36; ++f) {
            multiply_rows(rows, work + g * planes.size() + f * planes.matrix(), planes.row(), 1,
                          weights + f * weights_matrix(s.in), lanes, s.in, products + f * products_matrix, false);
          }
          for (std::size_t t = 0; t < rows; ++t) {
            transform_output(s, place_of(s, tiling, s.out, begin + g * group + t), products + t * lanes, bias, channel,
                             output);
          }
        }
      }
    }
  }
}

}  // namespace

bool processor_has_it() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

std::size_t work_size(const Shape& shape, int threads) { return Work(shape, Tiling(shape), threads).total; }

void forward(const Shape& shape, const float* source, const float* weights, const float* bias, float* output,
             float* work, int threads) {
  convolve(shape, source, bias, output, work, threads,
           [&](std::size_t channel, float* to) { transform_weights(weights, shape.in, channel, to); });
}

void backward_data(const Shape& shape, const float* output_gradient, const float* weights, float* source_gradient,
                   float* work, int threads) {
  Shape turned = shape;
  std::swap(turned.in, turned.out);
  convolve(turned, output_gradient, nullptr, source_gradient, work, threads, [&](std::size_t channel, float* to) {
    transform_turned_weights(weights, shape.in, shape.out, channel, to);
  });
}

void backward_weights(const Shape& s, const float* source, const float* output_gradient, float* weights_gradient,
                      float* bias_gradient, float* work, int threads) {
  const Tiling tiling(s);
  const Work sizes(s, tiling, threads);
  const Planes &sources = sizes.source, &gradients = sizes.gradient;
  float* const of_gradient = work + tiling.groups * sources.size();
  float* const of_threads = of_gradient + tiling.groups * gradients.size();
  const std::size_t parts = parts_of(s, threads);
#pragma omp parallel num_threads(threads)
  {
    float* const products = of_threads + static_cast<std::size_t>(this_thread()) * sizes.thread;
    for (std::size_t begin = 0; begin < tiling.total; begin += tiling.chunk()) {
      const std::size_t tiles = std::min(tiling.chunk(), tiling.total - begin);
#pragma omp for schedule(static)
      for (std::size_t t = 0; t < tiles; ++t) {
        transform_source(s, sources, source, place_of(s, tiling, s.in, begin + t),
                         work + t / group * sources.size() + t % group * sources.row());
        transform_gradient(s, gradients, output_gradient, place_of(s, tiling, s.out, begin + t),
                           of_gradient + t / group * gradients.size() + t % group * gradients.row());
      }
#pragma omp for schedule(dynamic)
      for (std::size_t item = 0; item < s.out / lanes * parts; ++item) {
        const std::size_t channel = item / parts * lanes, inputs = s.in / parts, first = item % parts * inputs;
        for (std::size_t g = 0; g * group < tiles; ++g) {
          const float* const gradient = of_gradient + g * gradients.size() + channel;
          const std::size_t rows = std::min(group, tiles - g * group);
          for (std::size_t f = 0; f < 36; ++f) {
            multiply_rows(inputs, work + g * sources.size() + f * sources.matrix() + first, 1, sources.row(),
                          gradient + f * gradients.matrix(), gradients.row(), rows,
                          products + f * weights_matrix(inputs), g > 0);
          }
          if (bias_gradient != nullptr && first == 0) {
            add_rows(rows, gradient + 36 * gradients.matrix(), gradients.row(), bias_gradient + channel, begin + g > 0);
          }
        }
        transform_weights_gradient(products, s.in, inputs, first, channel, begin > 0, weights_gradient);
      }
    }
  }
}

#else

bool processor_has_it() { return false; }
std::size_t work_size(const Shape&, int) { return 0; }
void forward(const Shape&, const float*, const float*, const float*, float*, float*, int) {}
void backward_data(const Shape&, const float*, const float*, float*, float*, int) {}
void backward_weights(const Shape&, const float*, const float*, float*, float*, float*, int) {}

#endif

}  // namespace paceline::train::winograd
