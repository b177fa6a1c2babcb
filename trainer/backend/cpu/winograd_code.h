// SPDX-License-Identifier: Apache-2.0
// Winograd's algorithm for one instruction set and one size of blocks. The file has no include guard: winograd_avx2.cpp
// and winograd_avx512.cpp include it after they have defined
//   PACELINE_WINOGRAD_CODE       the namespace of this code, in which its table of functions is `code`
//   PACELINE_WINOGRAD_NAME       of the code, as a string
//   PACELINE_WINOGRAD_TARGET     GCC's name of the instruction set
//   PACELINE_WINOGRAD_VECTOR     the type of a vector, which has the channels of a block (winograd_vectors.h)
//   PACELINE_WINOGRAD_NUMBER     the type of numbers in images and their gradients
//   PACELINE_WINOGRAD_RUNS_HERE  whether the processor has the instruction set
// and it undefines them. GCC only inlines an intrinsic function into functions with that target, hence no templates.
//
// The algorithm takes the tiles of the batch, 4×4 pixels each. The 6×6 pixels around every tile are transformed into 36
// matrices of tiles × channels, and the 3×3 weights into 36 matrices of channels × outputs. The 36 products of these
// matrices are transformed back. winograd_passes.h divides this work among threads and among the levels of the cache.
#include <algorithm>
#include <cstddef>
#include <type_traits>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "trainer/backend/cpu/winograd.h"
#include "trainer/backend/cpu/winograd_vectors.h"

#define PACELINE_WINOGRAD_FUNCTION __attribute__((target(PACELINE_WINOGRAD_TARGET)))
#define PACELINE_WINOGRAD_INLINE __attribute__((target(PACELINE_WINOGRAD_TARGET), always_inline)) inline

namespace paceline::train::winograd::PACELINE_WINOGRAD_CODE {
namespace {

using Vector = PACELINE_WINOGRAD_VECTOR;
using Number = PACELINE_WINOGRAD_NUMBER;

#include "trainer/backend/cpu/winograd_transforms.h"

constexpr std::size_t group = 48;  // tiles whose products are computed at once, at most
constexpr std::size_t block = sizeof(Vector) / sizeof(float);
constexpr int most_vectors = 2;  // of output channels at once
constexpr std::size_t lanes = most_vectors * block;
// Rows of a matrix that are multiplied at once. Their sums, two vectors each, the two vectors of the other matrix and a
// factor fill AVX2's 16 registers and most of AVX-512's 32. There, 12 rows load 14 values for 24 multiplications.
constexpr int most_rows = block == 8 ? 6 : 12, fewer_rows = block == 8 ? 2 : 4;
constexpr std::size_t pad = 16;  // keeps rows and matrices apart in the cache's sets

std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

// The matrices of some tiles: [matrix][tile][channel].
struct Planes {
  std::size_t channels, tiles, matrices;
  std::size_t row() const { return channels + pad; }
  std::size_t matrix() const { return tiles * row() + pad; }
  std::size_t size() const { return matrices * matrix(); }
};

// Output channels are computed in pieces of `lanes`. With blocks of 16, the last piece may have one vector.
std::size_t pieces_of(std::size_t channels) { return divide_up(channels, lanes); }
int vectors_of(std::size_t channels, std::size_t piece) {
  return static_cast<int>(std::min(lanes, channels - piece * lanes) / block);
}

constexpr std::size_t products_matrix = group * lanes + pad;
std::size_t weights_matrix(std::size_t channels) { return channels * lanes + pad; }

struct Tiling {
  std::size_t rows, columns, total;
  explicit Tiling(const Shape& s)
      : rows(divide_up(s.height, 4)), columns(divide_up(s.width, 4)), total(s.batch * rows * columns) {}
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

// Reads N×N pixels of a block from (y, x); those outside of the image are zero.
template <int N>
PACELINE_WINOGRAD_FUNCTION inline void load_pixels(const Shape& s, const Number* plane, std::ptrdiff_t y,
                                                   std::ptrdiff_t x, Vector (&pixels)[N][N]) {
  const auto height = static_cast<std::ptrdiff_t>(s.height), width = static_cast<std::ptrdiff_t>(s.width);
  constexpr auto step = static_cast<std::ptrdiff_t>(block);
  if (y >= 0 && x >= 0 && y + N <= height && x + N <= width) {
    for (int r = 0; r < N; ++r) {
      for (int c = 0; c < N; ++c) load(pixels[r][c], plane + ((y + r) * width + x + c) * step);
    }
    return;
  }
  for (int r = 0; r < N; ++r) {
    for (int c = 0; c < N; ++c) {
      const bool inside = y + r >= 0 && y + r < height && x + c >= 0 && x + c < width;
      if (inside) {
        load(pixels[r][c], plane + ((y + r) * width + x + c) * step);
      } else {
        fill(pixels[r][c], 0);
      }
    }
  }
}

// Transforms one block of channels of one tile of the source. plane: the block's pixels in the first image. to: the
// block's place in the tile's row of the first matrix.
PACELINE_WINOGRAD_FUNCTION void transform_source(const Shape& s, std::size_t matrix, const Number* plane,
                                                 const Place& place, float* to) {
  Vector pixels[6][6], transformed[6][6];
  load_pixels<6>(s, plane + place.first, place.y - 1, place.x - 1, pixels);
  both_ways<6, 6>(source_transform, pixels, transformed);
  for (std::size_t f = 0; f < 36; ++f) store(to + f * matrix, transformed[f / 6][f % 6]);
}

// The same for the output's gradient. A 37th matrix gets the sum of the tile's pixels.
PACELINE_WINOGRAD_FUNCTION void transform_gradient(const Shape& s, std::size_t matrix, const Number* plane,
                                                   const Place& place, float* to) {
  Vector pixels[4][4], transformed[6][6];
  load_pixels<4>(s, plane + place.first, place.y, place.x, pixels);
  both_ways<4, 6>(gradient_transform, pixels, transformed);
  for (std::size_t f = 0; f < 36; ++f) store(to + f * matrix, transformed[f / 6][f % 6]);
  Vector sum;
  fill(sum, 0);
  for (const auto& row : pixels) {
    for (const Vector& pixel : row) sum = plus(sum, pixel);
  }
  store(to + 36 * matrix, sum);
}

// The position in OIhw8i8o or OIhw16i16o of a block of output channels, from `out` on, of an input channel.
constexpr std::size_t tap_step = block * block;  // from one of the 3×3 taps to the next
std::size_t weights_at(std::size_t channels, std::size_t out, std::size_t in) {
  return (out / block * channels + in / block * block) * 9 * block + in % block * block;
}

// Transforms the weights of `vectors` blocks of output channels, from `first` on, into [matrix][input channel][lanes].
// channels: of the input.
PACELINE_WINOGRAD_FUNCTION void transform_weights(const float* weights, std::size_t channels, std::size_t first,
                                                  int vectors, float* to) {
  for (std::size_t i = 0; i < channels; ++i) {
    for (std::size_t at = 0; at < static_cast<std::size_t>(vectors) * block; at += block) {
      const float* from = weights + weights_at(channels, first + at, i);
      Vector taps[3][3], transformed[6][6];
      for (std::size_t k = 0; k < 9; ++k) load(taps[k / 3][k % 3], from + k * tap_step);
      both_ways<3, 6>(weights_transform, taps, transformed);
      float* row = to + i * lanes + at;
      for (std::size_t f = 0; f < 36; ++f) store(row + f * weights_matrix(channels), transformed[f / 6][f % 6]);
    }
  }
}

// The same for the gradient of the source, a convolution with the weights turned round, whose outputs are the inputs
// from `first` on. in, out: channels of the forward convolution.
PACELINE_WINOGRAD_FUNCTION void transform_turned_weights(const float* weights, std::size_t in, std::size_t out,
                                                         std::size_t first, int vectors, float* to) {
  for (std::size_t o = 0; o < out; o += block) {
    for (std::size_t at = 0; at < static_cast<std::size_t>(vectors) * block; at += block) {
      const float* from = weights + weights_at(in, o, first + at);
      Vector by_output[9][block];  // [tap][output channel], vectors of input channels
      for (std::size_t k = 0; k < 9; ++k) transpose(from + (8 - k) * tap_step, by_output[k]);
      for (std::size_t lane = 0; lane < block; ++lane) {
        Vector taps[3][3], transformed[6][6];
        for (std::size_t k = 0; k < 9; ++k) taps[k / 3][k % 3] = by_output[k][lane];
        both_ways<3, 6>(weights_transform, taps, transformed);
        float* row = to + (o + lane) * lanes + at;
        for (std::size_t f = 0; f < 36; ++f) store(row + f * weights_matrix(out), transformed[f / 6][f % 6]);
      }
    }
  }
}

// A product of matrices: c[r][·] = Σₖ a[r × row + k × step] b[k × b_row + ·] with k < count.
struct Factors {
  const float* a;
  std::size_t row, step;
  const float* b;
  std::size_t b_row, count;
};

// Computes Rows rows of the product, from `first` on, of Vectors vectors each. add: adds to c.
template <int Rows, int Vectors>
PACELINE_WINOGRAD_FUNCTION inline void multiply_block(const Factors& f, std::size_t first, float* c, bool add) {
  const float *const a = f.a + first * f.row, *const b = f.b;
  const std::size_t row = f.row, step = f.step, b_row = f.b_row;
  c += first * lanes;
  Vector sums[Rows][Vectors];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
    for (std::size_t v = 0; v < Vectors; ++v) {
      if (add) {
        load(sums[r][v], c + r * lanes + v * block);
      } else {
        fill(sums[r][v], 0);
      }
    }
  }
  for (std::size_t k = 0; k < f.count; ++k) {
    Vector right[Vectors];
#pragma GCC unroll 2
    for (std::size_t v = 0; v < Vectors; ++v) load(right[v], b + k * b_row + v * block);
#pragma GCC unroll 16
    for (std::size_t r = 0; r < Rows; ++r) {
      Vector factor;
      fill(factor, a[r * row + k * step]);
#pragma GCC unroll 2
      for (std::size_t v = 0; v < Vectors; ++v) sums[r][v] = plus(sums[r][v], factor, right[v]);
    }
  }
#pragma GCC unroll 16
  for (std::size_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
    for (std::size_t v = 0; v < Vectors; ++v) store(c + r * lanes + v * block, sums[r][v]);
  }
}

// The same for any number of rows.
template <int Vectors>
PACELINE_WINOGRAD_FUNCTION void multiply_rows(std::size_t rows, const Factors& f, float* c, bool add) {
  std::size_t r = 0;
  for (; r + most_rows <= rows; r += most_rows) multiply_block<most_rows, Vectors>(f, r, c, add);
  for (; r + fewer_rows <= rows; r += fewer_rows) multiply_block<fewer_rows, Vectors>(f, r, c, add);
  for (; r < rows; ++r) multiply_block<1, Vectors>(f, r, c, add);
}

void multiply(std::size_t rows, int vectors, const Factors& f, float* c, bool add) {
  vectors == 1 ? multiply_rows<1>(rows, f, c, add) : multiply_rows<most_vectors>(rows, f, c, add);
}

// Writes one block of channels of one tile of the output. from: the block's place in the tile's row of the first matrix
// of products. bias: of these channels; may be null. plane: the block's pixels in the first image.
PACELINE_WINOGRAD_FUNCTION void transform_output(const Shape& s, const Place& place, const float* from,
                                                 const float* bias, Number* plane) {
  Vector products[6][6], pixels[4][4], shift;
  for (std::size_t f = 0; f < 36; ++f) load(products[f / 6][f % 6], from + f * products_matrix);
  both_ways<6, 4>(output_transform, products, pixels);
  fill(shift, 0);
  if (bias != nullptr) load(shift, bias);
  Number* const image = plane + place.first;
  const auto y = static_cast<std::size_t>(place.y), x = static_cast<std::size_t>(place.x);
  for (std::size_t r = 0; r < 4 && y + r < s.height; ++r) {
    for (std::size_t c = 0; c < 4 && x + c < s.width; ++c) {
      store(image + ((y + r) * s.width + x + c) * block, plus(pixels[r][c], shift));
    }
  }
}

// The gradient of the weights of a piece from its products, [matrix][input channel][lanes], for a block of input
// channels from `first` on. channel: the piece's first output channel. channels: of the input. add: adds to gradient.
PACELINE_WINOGRAD_FUNCTION void transform_weights_gradient(const float* products, std::size_t channels,
                                                           std::size_t first, std::size_t channel, int vectors,
                                                           bool add, float* gradient) {
  for (std::size_t i = first; i < first + block; ++i) {
    for (std::size_t at = 0; at < static_cast<std::size_t>(vectors) * block; at += block) {
      Vector of_tile[6][6], taps[3][3];
      const float* row = products + i * lanes + at;
      for (std::size_t f = 0; f < 36; ++f) load(of_tile[f / 6][f % 6], row + f * weights_matrix(channels));
      both_ways<6, 3>(weights_gradient_transform, of_tile, taps);
      float* to = gradient + weights_at(channels, channel + at, i);
      for (std::size_t k = 0; k < 9; ++k) {
        Vector tap = taps[k / 3][k % 3];
        if (add) {
          Vector before;
          load(before, to + k * tap_step);
          tap = plus(before, tap);
        }
        store(to + k * tap_step, tap);
      }
    }
  }
}

// sums[·] = Σ of the rows' first `channels` elements. add: adds to sums.
void add_rows(std::size_t rows, std::size_t channels, const float* from, std::size_t row, float* sums, bool add) {
  for (std::size_t lane = 0; lane < channels; ++lane) {
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

#include "trainer/backend/cpu/winograd_passes.h"

bool runs_here() { return PACELINE_WINOGRAD_RUNS_HERE; }

Shape turned(const Shape& s) { return {s.batch, s.height, s.width, s.out, s.in}; }

std::size_t work_size(const Shape& shape, int threads) {
  return std::max(
      {convolution_work(shape, threads), convolution_work(turned(shape), threads), GradientWork(shape, threads).total});
}

void forward(const Shape& shape, const void* source, const float* weights, const float* bias, void* output, float* work,
             int threads) {
  convolve(
      shape, static_cast<const Number*>(source), bias, static_cast<Number*>(output), work, threads,
      [&](std::size_t channel, int vectors, float* to) { transform_weights(weights, shape.in, channel, vectors, to); });
}

void backward_data(const Shape& shape, const void* output_gradient, const float* weights, void* source_gradient,
                   float* work, int threads) {
  convolve(turned(shape), static_cast<const Number*>(output_gradient), nullptr, static_cast<Number*>(source_gradient),
           work, threads, [&](std::size_t channel, int vectors, float* to) {
             transform_turned_weights(weights, shape.in, shape.out, channel, vectors, to);
           });
}

}  // namespace

extern const Code code;
const Code code{PACELINE_WINOGRAD_NAME, block,           !std::is_same_v<Number, float>, runs_here, work_size, forward,
                backward_data,          backward_weights};

}  // namespace paceline::train::winograd::PACELINE_WINOGRAD_CODE

#undef PACELINE_WINOGRAD_CODE
#undef PACELINE_WINOGRAD_NAME
#undef PACELINE_WINOGRAD_TARGET
#undef PACELINE_WINOGRAD_VECTOR
#undef PACELINE_WINOGRAD_NUMBER
#undef PACELINE_WINOGRAD_RUNS_HERE
#undef PACELINE_WINOGRAD_FUNCTION
#undef PACELINE_WINOGRAD_INLINE
