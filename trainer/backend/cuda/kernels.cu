// Memory bandwidth is what these kernels take: each thread moves four neighbouring channels at a time, and the storage is
// looked at when the kernel runs, by all threads alike, rather than compiled in thrice.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <stdexcept>

#include "trainer/backend/cuda/kernels.h"
#include "trainer/backend/cuda/runtime.h"

namespace paceline::train::cuda {
namespace {

constexpr int block_quads = 16, block_rows = 16;  // threads of a block of a channel-wise kernel
constexpr int sum_blocks = 1024;                  // that sums are spread over, all columns together

__device__ float4 load4(const void* values, Storage storage, std::size_t quad) {
  if (storage == Storage::f32) return static_cast<const float4*>(values)[quad];
  const uint2 raw = static_cast<const uint2*>(values)[quad];
  float2 low, high;
  if (storage == Storage::bf16) {
    low = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(raw.x));
    high = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(raw.y));
  } else {
    low = __half22float2(reinterpret_cast<const __half2&>(raw.x));
    high = __half22float2(reinterpret_cast<const __half2&>(raw.y));
  }
  return make_float4(low.x, low.y, high.x, high.y);
}

__device__ void store4(void* values, Storage storage, std::size_t quad, float4 v) {
  if (storage == Storage::f32) {
    static_cast<float4*>(values)[quad] = v;
    return;
  }
  uint2 raw;
  if (storage == Storage::bf16) {
    reinterpret_cast<__nv_bfloat162&>(raw.x) = __floats2bfloat162_rn(v.x, v.y);
    reinterpret_cast<__nv_bfloat162&>(raw.y) = __floats2bfloat162_rn(v.z, v.w);
  } else {
    reinterpret_cast<__half2&>(raw.x) = __floats2half2_rn(v.x, v.y);
    reinterpret_cast<__half2&>(raw.y) = __floats2half2_rn(v.z, v.w);
  }
  static_cast<uint2*>(values)[quad] = raw;
}

__device__ void store1(void* values, Storage storage, std::size_t i, float v) {
  if (storage == Storage::f32) static_cast<float*>(values)[i] = v;
  else if (storage == Storage::bf16) static_cast<__nv_bfloat16*>(values)[i] = __float2bfloat16_rn(v);
  else static_cast<__half*>(values)[i] = __float2half_rn(v);
}

__device__ float load1(const void* values, Storage storage, std::size_t i) {
  if (storage == Storage::f32) return static_cast<const float*>(values)[i];
  if (storage == Storage::bf16) return __bfloat162float(static_cast<const __nv_bfloat16*>(values)[i]);
  return __half2float(static_cast<const __half*>(values)[i]);
}

template <class F>
__device__ float4 map(float4 a, F f) {
  return make_float4(f(a.x), f(a.y), f(a.z), f(a.w));
}
template <class F>
__device__ float4 map(float4 a, float4 b, F f) {
  return make_float4(f(a.x, b.x), f(a.y, b.y), f(a.z, b.z), f(a.w, b.w));
}
__device__ float4 operator+(float4 a, float4 b) {
  return map(a, b, [](float x, float y) { return x + y; });
}

// What is not a number stays so: a loss that stays finite would hide it.
__device__ float4 positive(float4 v) {
  return map(v, [](float x) { return x <= 0 ? 0.0f : x; });
}
__device__ float4 where_positive(float4 y, float4 dy) {
  return map(y, dy, [](float out, float gradient) { return out > 0 ? gradient : 0.0f; });
}

// ---- element-wise: body(quad) for every four values ----

template <class Body>
__global__ void __launch_bounds__(256) each_quad_kernel(std::size_t quads, Body body) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < quads; i += step) body(i);
}

template <class Body>
void each_quad(cudaStream_t stream, std::size_t quads, Body body) {
  if (quads == 0) return;
  const auto blocks = static_cast<unsigned>(std::min<std::size_t>((quads + 255) / 256, 16384));
  each_quad_kernel<<<blocks, 256, 0, stream>>>(quads, body);
  PACELINE_CHECK_CUDA(cudaGetLastError());
}

std::size_t quads_of(std::size_t count) { return (count + 3) / 4; }

struct ReluBody {
  Storage s;
  const void *a, *b;
  void* y;
  bool relu;
  __device__ void operator()(std::size_t i) const {
    float4 v = load4(a, s, i);
    if (b != nullptr) v = v + load4(b, s, i);
    store4(y, s, i, relu ? positive(v) : v);
  }
};

struct ReluBackwardBody {
  Storage s;
  const void *y, *dy, *other;
  void* dx;
  __device__ void operator()(std::size_t i) const {
    float4 gradient = load4(dy, s, i);
    if (other != nullptr) gradient = gradient + load4(other, s, i);
    store4(dx, s, i, where_positive(load4(y, s, i), gradient));
  }
};

// SplitMix64's i-th value from `seed`, as a number from 0 to 1 of 24 bits.
__device__ float uniform(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = seed + 0x9e3779b97f4a7c15u * (i + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return static_cast<float>(z >> 40) * 0x1p-24f;
}

struct DropoutBody {
  Storage s;
  const void* x;
  void* y;
  float drop;
  std::uint64_t layer;
  const Step* step;
  __device__ void operator()(std::size_t i) const {
    const std::uint64_t seed = step->dropout + layer * 0xd1342543de82ef95u;
    const float keep = 1 / (1 - drop);
    const float4 v = load4(x, s, i);
    const auto masked = [&](float value, int k) { return uniform(seed, 4 * i + k) < drop ? 0.0f : value * keep; };
    store4(y, s, i, make_float4(masked(v.x, 0), masked(v.y, 1), masked(v.z, 2), masked(v.w, 3)));
  }
};

struct NarrowBody {
  Storage s;
  const float* from;
  void* to;
  __device__ void operator()(std::size_t i) const { store4(to, s, i, reinterpret_cast<const float4*>(from)[i]); }
};

__device__ bool finite(float4 v) { return isfinite(v.x) && isfinite(v.y) && isfinite(v.z) && isfinite(v.w); }

struct TakeGradientBody {
  Storage s;
  const void* from;
  float* to;
  Step* step;
  __device__ void operator()(std::size_t i) const {
    const float unscale = step->unscale;
    const float4 v = map(load4(from, s, i), [=](float value) { return value * unscale; });
    if (!finite(v)) step->overflow = 1;
    reinterpret_cast<float4*>(to)[i] = v;
  }
};

struct NonfiniteBody {
  Storage s;
  const void* values;
  unsigned* flag;
  __device__ void operator()(std::size_t i) const {
    if (!finite(load4(values, s, i))) *flag = 1;
  }
};

// ---- by channel: a thread has four channels and goes down the rows ----

template <class Body>
__global__ void __launch_bounds__(block_quads* block_rows) each_row_kernel(Body body, Rows extent) {
  const std::int64_t quads = extent.channels / 4, quad = static_cast<std::int64_t>(blockIdx.y) * block_quads + threadIdx.x;
  if (quad >= quads) return;
  const auto of_channels = body.of(quad);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * block_rows;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * block_rows + threadIdx.y; row < extent.rows; row += step) {
    of_channels(static_cast<std::size_t>(row * quads + quad));
  }
}

dim3 grid_of(Rows extent, std::int64_t blocks, std::int64_t rows_a_block) {
  const std::int64_t columns = (extent.channels / 4 + block_quads - 1) / block_quads;
  const std::int64_t most = std::max<std::int64_t>(1, (extent.rows + rows_a_block - 1) / rows_a_block);
  return dim3(static_cast<unsigned>(std::clamp<std::int64_t>(blocks / columns, 1, most)), static_cast<unsigned>(columns));
}

template <class Body>
void each_row(cudaStream_t stream, Rows extent, Body body) {
  each_row_kernel<<<grid_of(extent, 16384, 4 * block_rows), dim3(block_quads, block_rows), 0, stream>>>(body, extent);
  PACELINE_CHECK_CUDA(cudaGetLastError());
}

// Adds up what `terms` adds to eight numbers, two for each channel, over the rows: fp32 over eight rows, then fp64.
// partials[block of rows][first or second number][channel].
template <class Terms>
__global__ void __launch_bounds__(block_quads* block_rows) sum_rows_kernel(Terms terms, Rows extent, double* partials) {
  __shared__ double shared[block_rows][block_quads][8];
  const std::int64_t quads = extent.channels / 4, quad = static_cast<std::int64_t>(blockIdx.y) * block_quads + threadIdx.x;
  double total[8] = {};
  if (quad < quads) {
    const auto of_channels = terms.of(quad);
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * block_rows;
    float part[8] = {};
    int rows = 0;
    for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * block_rows + threadIdx.y; row < extent.rows; row += step) {
      of_channels(static_cast<std::size_t>(row * quads + quad), part);
      if (++rows == 8) {
        rows = 0;
        for (int k = 0; k < 8; ++k) total[k] += part[k], part[k] = 0;
      }
    }
    for (int k = 0; k < 8; ++k) total[k] += part[k];
  }
  for (int k = 0; k < 8; ++k) shared[threadIdx.y][threadIdx.x][k] = total[k];
  __syncthreads();
  const int t = threadIdx.y * block_quads + threadIdx.x, x = t / 8, k = t % 8;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * block_quads + x;
  if (t >= block_quads * 8 || column >= quads) return;
  double sum = 0;
  for (int y = 0; y < block_rows; ++y) sum += shared[y][x][k];
  partials[(static_cast<std::int64_t>(blockIdx.x) * 2 + k / 4) * extent.channels + column * 4 + k % 4] = sum;
}

// A warp for each channel. rows: stands behind the sums, if not negative.
__global__ void finish_sums_kernel(const double* partials, int blocks, std::int64_t channels, double rows, double* sums) {
  const std::int64_t channel = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (channel >= channels) return;
  for (int k = 0; k < 2; ++k) {
    double sum = 0;
    for (int b = threadIdx.x; b < blocks; b += 32) sum += partials[(static_cast<std::int64_t>(b) * 2 + k) * channels + channel];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
    if (threadIdx.x == 0) sums[k * channels + channel] = sum;
  }
  if (channel == 0 && threadIdx.x == 0 && rows >= 0) sums[2 * channels] = rows;
}

template <class Terms>
void sum_rows(cudaStream_t stream, Rows extent, Terms terms, double* partials, double rows, double* sums) {
  const dim3 grid = grid_of(extent, sum_blocks, 4 * block_rows);
  sum_rows_kernel<<<grid, dim3(block_quads, block_rows), 0, stream>>>(terms, extent, partials);
  PACELINE_CHECK_CUDA(cudaGetLastError());
  finish_sums_kernel<<<static_cast<unsigned>((extent.channels + 7) / 8), dim3(32, 8), 0, stream>>>(
      partials, static_cast<int>(grid.x), extent.channels, rows, sums);
  PACELINE_CHECK_CUDA(cudaGetLastError());
}

__device__ void accumulate(float (&part)[8], float4 first, float4 second) {
  part[0] += first.x, part[1] += first.y, part[2] += first.z, part[3] += first.w;
  part[4] += second.x, part[5] += second.y, part[6] += second.z, part[7] += second.w;
}
__device__ float4 times(float4 a, float4 b) {
  return map(a, b, [](float x, float y) { return x * y; });
}
__device__ float4 of_channels4(const float* values, std::int64_t quad) { return reinterpret_cast<const float4*>(values)[quad]; }

struct AddBiasBody {
  Storage s;
  void* y;
  const float* bias;
  bool relu;
  struct Of {
    const AddBiasBody& b;
    float4 bias;
    __device__ void operator()(std::size_t at) const {
      const float4 v = load4(b.y, b.s, at) + bias;
      store4(b.y, b.s, at, b.relu ? positive(v) : v);
    }
  };
  __device__ Of of(std::int64_t quad) const { return {*this, of_channels4(bias, quad)}; }
};

struct MomentTerms {
  Storage s;
  const void* x;
  __device__ MomentTerms of(std::int64_t) const { return *this; }
  __device__ void operator()(std::size_t at, float (&part)[8]) const {
    const float4 v = load4(x, s, at);
    accumulate(part, v, times(v, v));
  }
};

struct BiasTerms {
  Storage s;
  const void* dy;
  __device__ BiasTerms of(std::int64_t) const { return *this; }
  __device__ void operator()(std::size_t at, float (&part)[8]) const {
    accumulate(part, load4(dy, s, at), make_float4(0, 0, 0, 0));
  }
};

// A batch norm's numbers of four channels.
struct Norm4 {
  float4 mean, inverse, scale, shift;
  __device__ Norm4(const kernels::Norm& n, std::int64_t quad)
      : mean(of_channels4(n.mean, quad)),
        inverse(of_channels4(n.inverse_deviation, quad)),
        scale(of_channels4(n.scale, quad)),
        shift(of_channels4(n.shift, quad)) {}
  __device__ float4 normalised(float4 x) const {
    return make_float4((x.x - mean.x) * inverse.x, (x.y - mean.y) * inverse.y, (x.z - mean.z) * inverse.z,
                       (x.w - mean.w) * inverse.w);
  }
  // The same roundings forward and backward, where its sign says what the ReLU let through.
  __device__ float4 result(float4 hat) const {
    return make_float4(fmaf(hat.x, scale.x, shift.x), fmaf(hat.y, scale.y, shift.y), fmaf(hat.z, scale.z, shift.z),
                       fmaf(hat.w, scale.w, shift.w));
  }
};

struct NormaliseBody {
  Storage s;
  const void *x, *residual;
  void* y;
  bool relu;
  kernels::Norm norm;
  struct Of {
    const NormaliseBody& b;
    Norm4 n;
    __device__ void operator()(std::size_t at) const {
      float4 v = n.result(n.normalised(load4(b.x, b.s, at)));
      if (b.residual != nullptr) v = v + load4(b.residual, b.s, at);
      store4(b.y, b.s, at, b.relu ? positive(v) : v);
    }
  };
  __device__ Of of(std::int64_t quad) const { return {*this, Norm4(norm, quad)}; }
};

// The gradient of what the mask has not hidden; hat: x normalised.
__device__ float4 masked_gradient(const kernels::NormBackward& b, Storage s, std::size_t at, const Norm4& n, float4 hat) {
  float4 dy = load4(b.dy, s, at);
  if (b.other != nullptr) dy = dy + load4(b.other, s, at);
  if (b.mask == kernels::Mask::by_output) return where_positive(load4(b.y, s, at), dy);
  if (b.mask == kernels::Mask::by_formula) return where_positive(n.result(hat), dy);
  return dy;
}

struct GradientTerms {
  Storage s;
  kernels::NormBackward b;
  kernels::Norm norm;
  struct Of {
    const GradientTerms& t;
    Norm4 n;
    __device__ void operator()(std::size_t at, float (&part)[8]) const {
      const float4 hat = n.normalised(load4(t.b.x, t.s, at));
      const float4 dy = masked_gradient(t.b, t.s, at, n, hat);
      if (t.b.masked != nullptr) store4(t.b.masked, t.s, at, dy);
      accumulate(part, dy, times(dy, hat));
    }
  };
  __device__ Of of(std::int64_t quad) const { return {*this, Norm4(norm, quad)}; }
};

struct NormaliseBackwardBody {
  Storage s;
  kernels::NormBackward b;
  const double *sums, *count;
  std::int64_t channels;
  void* dx;
  kernels::Norm norm;
  struct Of {
    const NormaliseBackwardBody& b;
    Norm4 n;
    float4 mean_gradient, mean_product;
    __device__ void operator()(std::size_t at) const {
      const float4 hat = n.normalised(load4(b.b.x, b.s, at));
      const float4 dy = b.b.masked != nullptr ? load4(b.b.masked, b.s, at) : masked_gradient(b.b, b.s, at, n, hat);
      store4(b.dx, b.s, at,
             make_float4(n.scale.x * n.inverse.x * (dy.x - mean_gradient.x - hat.x * mean_product.x),
                         n.scale.y * n.inverse.y * (dy.y - mean_gradient.y - hat.y * mean_product.y),
                         n.scale.z * n.inverse.z * (dy.z - mean_gradient.z - hat.z * mean_product.z),
                         n.scale.w * n.inverse.w * (dy.w - mean_gradient.w - hat.w * mean_product.w)));
    }
  };
  __device__ float4 mean_of(std::int64_t quad, int which) const {
    if (sums == nullptr) return make_float4(0, 0, 0, 0);
    const double* four = sums + which * channels + 4 * quad;
    const double n = *count;
    return make_float4(static_cast<float>(four[0] / n), static_cast<float>(four[1] / n), static_cast<float>(four[2] / n),
                       static_cast<float>(four[3] / n));
  }
  __device__ Of of(std::int64_t quad) const { return {*this, Norm4(norm, quad), mean_of(quad, 0), mean_of(quad, 1)}; }
};

// ---- a thread for each channel ----

constexpr double epsilon = 1e-5f;  // PyTorch's

__device__ float inverse_of(double variance) { return static_cast<float>(1 / sqrt(variance + epsilon)); }

__global__ void set_statistics_kernel(const double* sums, std::int64_t channels, float momentum, float* running_mean,
                                      float* running_variance, float* mean, float* inverse_deviation) {
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= channels) return;
  const double n = sums[2 * channels], average = sums[c] / n;
  double variance = sums[channels + c] / n - average * average;  // fp64: the difference is good
  if (variance < 0) variance = 0;
  mean[c] = static_cast<float>(average);
  inverse_deviation[c] = inverse_of(variance);
  const double unbiased = n > 1 ? variance * (n / (n - 1)) : variance;
  running_mean[c] = static_cast<float>(running_mean[c] + momentum * (average - running_mean[c]));
  running_variance[c] = static_cast<float>(running_variance[c] + momentum * (unbiased - running_variance[c]));
}

__global__ void use_running_kernel(const float* running_mean, const float* running_variance, std::int64_t channels,
                                   float* mean, float* inverse_deviation) {
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= channels) return;
  mean[c] = running_mean[c];
  inverse_deviation[c] = inverse_of(running_variance[c]);
}

__global__ void parameter_gradients_kernel(const double* sums, std::int64_t channels, bool add, float* scale_gradient,
                                           float* shift_gradient, Step* step) {
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= channels) return;
  const auto put = [&](float* gradient, double sum) {
    const auto value = static_cast<float>(sum * step->unscale);
    if (!isfinite(value)) step->overflow = 1;
    gradient[c] = add ? gradient[c] + value : value;
  };
  put(shift_gradient, sums[c]);
  if (scale_gradient != nullptr) put(scale_gradient, sums[channels + c]);
}

unsigned blocks_for(std::int64_t threads) { return static_cast<unsigned>((threads + 127) / 128); }

// ---- pooling ----

struct PoolIndex {
  unsigned quad, x, y, sample;
  __device__ PoolIndex(std::size_t i, unsigned quads, unsigned width, unsigned height) {
    const auto at = static_cast<unsigned>(i);
    quad = at % quads;
    x = at / quads % width;
    y = at / quads / width % height;
    sample = at / quads / width / height;
  }
};

struct MaxPoolBody {
  Storage s;
  const void* in;
  void* out;
  uchar4* where;
  kernels::Pool p;
  __device__ void operator()(std::size_t i) const {
    const auto quads = static_cast<unsigned>(p.channels / 4);
    const PoolIndex at(i, quads, p.out_width, p.out_height);
    float4 best{};
    uchar4 position{};
    bool first = true;
    for (int ky = 0; ky < p.kernel; ++ky) {
      const std::int64_t y = at.y * p.stride + ky - p.padding;
      if (y < 0 || y >= p.height) continue;
      for (int kx = 0; kx < p.kernel; ++kx) {
        const std::int64_t x = at.x * p.stride + kx - p.padding;
        if (x < 0 || x >= p.width) continue;
        const float4 v = load4(in, s, ((at.sample * p.height + y) * p.width + x) * quads + at.quad);
        const auto here = static_cast<unsigned char>(ky * p.kernel + kx);
        const auto take = [&](float value, float& most, unsigned char& where_most) {
          if (first || (!(value <= most) && most == most)) most = value, where_most = here;  // keeps what is no number
        };
        take(v.x, best.x, position.x), take(v.y, best.y, position.y);
        take(v.z, best.z, position.z), take(v.w, best.w, position.w);
        first = false;
      }
    }
    store4(out, s, i, best);
    where[i] = position;
  }
};

// From the windows that hold a pixel those whose maximum it was.
struct MaxPoolBackwardBody {
  Storage s;
  const void* dy;
  const uchar4* where;
  void* dx;
  kernels::Pool p;
  __device__ void operator()(std::size_t i) const {
    const auto quads = static_cast<unsigned>(p.channels / 4);
    const PoolIndex at(i, quads, p.width, p.height);
    const auto first = [&](std::int64_t pixel) {
      const std::int64_t least = pixel + p.padding - p.kernel + 1;
      return least <= 0 ? 0 : (least + p.stride - 1) / p.stride;
    };
    float4 sum{};
    for (std::int64_t oy = first(at.y); oy < p.out_height && oy * p.stride <= at.y + p.padding; ++oy) {
      for (std::int64_t ox = first(at.x); ox < p.out_width && ox * p.stride <= at.x + p.padding; ++ox) {
        const auto here = static_cast<unsigned char>((at.y + p.padding - oy * p.stride) * p.kernel + at.x + p.padding -
                                                     ox * p.stride);
        const std::size_t window = ((at.sample * p.out_height + oy) * p.out_width + ox) * quads + at.quad;
        const uchar4 most = where[window];
        const float4 v = load4(dy, s, window);
        sum = sum + make_float4(most.x == here ? v.x : 0, most.y == here ? v.y : 0, most.z == here ? v.z : 0,
                                most.w == here ? v.w : 0);
      }
    }
    store4(dx, s, i, sum);
  }
};

struct AveragePoolBody {
  Storage s;
  const void* in;
  void* out;
  kernels::Pool p;
  __device__ void operator()(std::size_t i) const {
    const auto quads = static_cast<unsigned>(p.channels / 4);
    const PoolIndex at(i, quads, p.out_width, p.out_height);
    float4 sum{};
    for (int ky = 0; ky < p.kernel; ++ky) {
      for (int kx = 0; kx < p.kernel; ++kx) {
        const std::int64_t y = at.y * p.kernel + ky, x = at.x * p.kernel + kx;
        sum = sum + load4(in, s, ((at.sample * p.height + y) * p.width + x) * quads + at.quad);
      }
    }
    const auto values = static_cast<float>(p.kernel * p.kernel);
    store4(out, s, i, map(sum, [=](float v) { return v / values; }));
  }
};

struct AveragePoolBackwardBody {
  Storage s;
  const void* dy;
  void* dx;
  kernels::Pool p;
  __device__ void operator()(std::size_t i) const {
    const auto quads = static_cast<unsigned>(p.channels / 4);
    const PoolIndex at(i, quads, p.width, p.height);
    const std::int64_t oy = at.y / p.kernel, ox = at.x / p.kernel;
    float4 v{};  // rows and columns that no window reaches have no gradient
    if (oy < p.out_height && ox < p.out_width) {
      v = load4(dy, s, ((at.sample * p.out_height + oy) * p.out_width + ox) * quads + at.quad);
    }
    const auto values = static_cast<float>(p.kernel * p.kernel);
    store4(dx, s, i, map(v, [=](float value) { return value / values; }));
  }
};

// ---- loss: a block for each sample ----

constexpr int loss_threads = 128;

struct Top {
  float value;
  long long position;
};

// The largest logit, the first of equal ones, and Σ exp(logit − largest): the same for all threads.
__device__ double softmax_sum(const float* row, std::int64_t classes, Top& top) {
  __shared__ Top tops[loss_threads];
  __shared__ double sums[loss_threads];
  Top own{row[0], 0};
  for (std::int64_t c = threadIdx.x; c < classes; c += loss_threads) {
    if (row[c] > own.value) own = {row[c], c};
  }
  tops[threadIdx.x] = own;
  __syncthreads();
  for (int half = loss_threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const Top other = tops[threadIdx.x + half];
      Top& mine = tops[threadIdx.x];
      if (other.value > mine.value || (other.value == mine.value && other.position < mine.position)) mine = other;
    }
    __syncthreads();
  }
  top = tops[0];
  double sum = 0;
  for (std::int64_t c = threadIdx.x; c < classes; c += loss_threads) sum += exp(static_cast<double>(row[c]) - top.value);
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = loss_threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  return sums[0];
}

__global__ void __launch_bounds__(loss_threads)
    cross_entropy_kernel(const float* logits, const std::int32_t* labels, std::int64_t classes, double* losses) {
  const float* row = logits + blockIdx.x * classes;
  const std::int32_t label = labels[blockIdx.x];
  Top top{};
  const double sum = softmax_sum(row, classes, top);
  if (threadIdx.x != 0) return;
  losses[2 * blockIdx.x] = log(sum) + top.value - row[label];
  losses[2 * blockIdx.x + 1] = top.position == label;
}

__global__ void __launch_bounds__(loss_threads) add_scores_kernel(const double* losses, std::int64_t samples, BatchScore* score) {
  __shared__ double sums[loss_threads][2];
  double loss = 0, correct = 0;
  for (std::int64_t i = threadIdx.x; i < samples; i += loss_threads) loss += losses[2 * i], correct += losses[2 * i + 1];
  sums[threadIdx.x][0] = loss;
  sums[threadIdx.x][1] = correct;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < loss_threads; ++i) loss += sums[i][0], correct += sums[i][1];
  score->loss_sum = loss;
  score->correct = static_cast<long long>(correct);
}

__global__ void __launch_bounds__(loss_threads)
    cross_entropy_backward_kernel(Storage s, const float* logits, const std::int32_t* labels, std::int64_t classes,
                                  const Step* step, void* gradient) {
  const float* row = logits + blockIdx.x * classes;
  Top top{};
  const double sum = softmax_sum(row, classes, top);
  const double factor = step->loss_gradient;
  for (std::int64_t c = threadIdx.x; c < classes; c += loss_threads) {
    const double probability = exp(static_cast<double>(row[c]) - top.value) / sum;
    const double value = factor * (probability - (c == labels[blockIdx.x] ? 1 : 0));
    store1(gradient, s, blockIdx.x * classes + c, static_cast<float>(value));
  }
}

// Thirty-two columns a block, each by eight threads.
__global__ void __launch_bounds__(256) column_sums_kernel(Storage s, const void* dy, float* gradient, Step* step,
                                                          std::int64_t samples, std::int64_t outputs) {
  __shared__ double sums[8][32];
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * 32 + threadIdx.x;
  double sum = 0;
  if (column < outputs) {
    for (std::int64_t row = threadIdx.y; row < samples; row += 8) {
      sum += load1(dy, s, static_cast<std::size_t>(row * outputs + column));
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= outputs) return;
  for (int y = 1; y < 8; ++y) sum += sums[y][threadIdx.x];
  const auto value = static_cast<float>(sum * step->unscale);
  if (!isfinite(value)) step->overflow = 1;
  gradient[column] = value;
}

// ---- input: value(sample, channel, pixel), four channels at a time ----

template <class Value>
struct RowsBody {
  Storage s;
  void* rows;
  std::int64_t channels, stored_channels, pixels;
  Value value;
  __device__ void operator()(std::size_t i) const {
    const auto quads = static_cast<std::size_t>(stored_channels / 4);
    const std::size_t pixel_of_all = i / quads;
    const auto first = static_cast<std::int64_t>(i % quads) * 4;
    const auto sample = static_cast<std::int64_t>(pixel_of_all / pixels);
    const auto pixel = static_cast<std::int64_t>(pixel_of_all % pixels);
    const auto get = [&](std::int64_t c) { return c < channels ? value(sample, c, pixel) : 0.0f; };
    store4(rows, s, i, make_float4(get(first), get(first + 1), get(first + 2), get(first + 3)));
  }
};

struct PlaneValue {
  const float* planes;
  std::int64_t channels, pixels;
  __device__ float operator()(std::int64_t sample, std::int64_t c, std::int64_t pixel) const {
    return planes[(sample * channels + c) * pixels + pixel];
  }
};

struct ByteValue {
  kernels::ByteImages in;
  __device__ float operator()(std::int64_t sample, std::int64_t c, std::int64_t pixel) const {
    const kernels::Cut cut = in.cuts[sample];
    const std::int64_t column = pixel % in.size;
    const std::int64_t y = pixel / in.size + cut.shift_y;
    const std::int64_t x = (cut.flip ? in.size - 1 - column : column) + cut.shift_x;
    if (y < 0 || y >= in.size || x < 0 || x >= in.size) return 0;
    const float byte = in.planes[((sample * in.channels + c) * in.size + y) * in.size + x];
    return (byte - in.mean[c]) * in.scale[c];
  }
};

}  // namespace

std::size_t partial_sum_bytes(std::int64_t channels) {
  const std::int64_t columns = std::max<std::int64_t>(1, (channels / 4 + block_quads - 1) / block_quads);
  const std::int64_t blocks = std::max<std::int64_t>(1, sum_blocks / columns);
  return static_cast<std::size_t>(blocks * 2 * channels + 2 * channels) * sizeof(double);
}

namespace kernels {

void relu(cudaStream_t stream, Storage s, const void* x, void* y, std::size_t count) {
  each_quad(stream, quads_of(count), ReluBody{s, x, nullptr, y, true});
}

void add_relu(cudaStream_t stream, Storage s, const void* a, const void* b, void* y, std::size_t count) {
  each_quad(stream, quads_of(count), ReluBody{s, a, b, y, true});
}

void add(cudaStream_t stream, Storage s, const void* a, const void* b, void* sum, std::size_t count) {
  each_quad(stream, quads_of(count), ReluBody{s, a, b, sum, false});
}

void relu_backward(cudaStream_t stream, Storage s, const void* y, const void* dy, const void* other, void* dx,
                   std::size_t count) {
  each_quad(stream, quads_of(count), ReluBackwardBody{s, y, dy, other, dx});
}

void dropout(cudaStream_t stream, Storage s, const void* x, void* y, std::size_t count, float drop, std::uint64_t layer,
             const Step* step) {
  each_quad(stream, quads_of(count), DropoutBody{s, x, y, drop, layer, step});
}

void narrow(cudaStream_t stream, Storage s, const float* from, void* to, std::size_t count) {
  each_quad(stream, quads_of(count), NarrowBody{s, from, to});
}

void take_gradient(cudaStream_t stream, Storage s, const void* from, float* to, std::size_t count, Step* step) {
  each_quad(stream, quads_of(count), TakeGradientBody{s, from, to, step});
}

void find_nonfinite(cudaStream_t stream, Storage s, const void* values, std::size_t count, unsigned* flag) {
  each_quad(stream, count / 4, NonfiniteBody{s, values, flag});
}

void add_bias(cudaStream_t stream, Storage s, void* y, const float* bias, bool relu, Rows extent) {
  each_row(stream, extent, AddBiasBody{s, y, bias, relu});
}

void bias_gradient(cudaStream_t stream, Storage s, const void* dy, double* partials, float* gradient, Step* step,
                   Rows extent) {
  double* sums = partials + partial_sum_bytes(extent.channels) / sizeof(double) - 2 * extent.channels;
  sum_rows(stream, extent, BiasTerms{s, dy}, partials, -1, sums);
  norm_parameter_gradients(stream, sums, extent.channels, false, nullptr, gradient, step);
}

void linear_bias_gradient(cudaStream_t stream, Storage s, const void* dy, float* gradient, Step* step,
                          std::int64_t samples, std::int64_t outputs) {
  column_sums_kernel<<<static_cast<unsigned>((outputs + 31) / 32), dim3(32, 8), 0, stream>>>(s, dy, gradient, step,
                                                                                             samples, outputs);
  PACELINE_CHECK_CUDA(cudaGetLastError());
}

void channel_moments(cudaStream_t stream, Storage s, const void* x, double* partials, double* sums, Rows extent) {
  sum_rows(stream, extent, MomentTerms{s, x}, partials, static_cast<double>(extent.rows), sums);
}

void set_statistics(cudaStream_t stream, const double* sums, std::int64_t channels, float momentum, float* running_mean,
                    float* running_variance, float* mean, float* inverse_deviation) {
  set_statistics_kernel<<<blocks_for(channels), 128, 0, stream>>>(sums, channels, momentum, running_mean,
                                                                  running_variance, mean, inverse_deviation);
  PACELINE_CHECK_CUDA(cudaGetLastError());
}

void use_running_statistics(cudaStream_t stream, const float* running_mean, const float* running_variance,
                            std::int64_t channels, float* mean, float* inverse_deviation) {
  use_running_kernel<<<blocks_for(channels), 128, 0, stream>>>(running_mean, running_variance, channels, mean,
                                                               inverse_deviation);
  PACELINE_CHECK_CUDA(cudaGetLastError());
}

void normalise(cudaStream_t stream, Storage s, const void* x, const void* residual, void* y, bool relu, Norm norm,
               Rows extent) {
  each_row(stream, extent, NormaliseBody{s, x, residual, y, relu, norm});
}

void channel_gradients(cudaStream_t stream, Storage s, const NormBackward& b, double* partials, double* sums, Norm norm,
                       Rows extent) {
  sum_rows(stream, extent, GradientTerms{s, b, norm}, partials, -1, sums);
}

void norm_parameter_gradients(cudaStream_t stream, const double* sums, std::int64_t channels, bool add,
                              float* scale_gradient, float* shift_gradient, Step* step) {
  parameter_gradients_kernel<<<blocks_for(channels), 128, 0, stream>>>(sums, channels, add, scale_gradient,
                                                                       shift_gradient, step);
  PACELINE_CHECK_CUDA(cudaGetLastError());
}

void normalise_backward(cudaStream_t stream, Storage s, const NormBackward& b, const double* sums, const double* count,
                        void* dx, Norm norm, Rows extent) {
  each_row(stream, extent, NormaliseBackwardBody{s, b, sums, count, extent.channels, dx, norm});
}

namespace {
std::size_t quads_in(const Pool& p) { return static_cast<std::size_t>(p.samples * p.height * p.width * p.channels / 4); }
std::size_t quads_out(const Pool& p) {
  return static_cast<std::size_t>(p.samples * p.out_height * p.out_width * p.channels / 4);
}
}  // namespace

void max_pool(cudaStream_t stream, Storage s, const void* x, void* y, std::uint8_t* where, const Pool& p) {
  each_quad(stream, quads_out(p), MaxPoolBody{s, x, y, reinterpret_cast<uchar4*>(where), p});
}

void max_pool_backward(cudaStream_t stream, Storage s, const void* dy, const std::uint8_t* where, void* dx, const Pool& p) {
  each_quad(stream, quads_in(p), MaxPoolBackwardBody{s, dy, reinterpret_cast<const uchar4*>(where), dx, p});
}

void average_pool(cudaStream_t stream, Storage s, const void* x, void* y, const Pool& p) {
  each_quad(stream, quads_out(p), AveragePoolBody{s, x, y, p});
}

void average_pool_backward(cudaStream_t stream, Storage s, const void* dy, void* dx, const Pool& p) {
  each_quad(stream, quads_in(p), AveragePoolBackwardBody{s, dy, dx, p});
}

void cross_entropy(cudaStream_t stream, const float* logits, const std::int32_t* labels, std::int64_t samples,
                   std::int64_t classes, double* losses, BatchScore* score) {
  cross_entropy_kernel<<<static_cast<unsigned>(samples), loss_threads, 0, stream>>>(logits, labels, classes, losses);
  PACELINE_CHECK_CUDA(cudaGetLastError());
  add_scores_kernel<<<1, loss_threads, 0, stream>>>(losses, samples, score);
  PACELINE_CHECK_CUDA(cudaGetLastError());
}

void cross_entropy_backward(cudaStream_t stream, Storage s, const float* logits, const std::int32_t* labels,
                            std::int64_t samples, std::int64_t classes, const Step* step, void* gradient) {
  cross_entropy_backward_kernel<<<static_cast<unsigned>(samples), loss_threads, 0, stream>>>(s, logits, labels, classes,
                                                                                             step, gradient);
  PACELINE_CHECK_CUDA(cudaGetLastError());
}

void planes_to_rows(cudaStream_t stream, Storage s, const float* planes, void* rows, std::int64_t samples,
                    std::int64_t channels, std::int64_t stored_channels, std::int64_t pixels) {
  each_quad(stream, static_cast<std::size_t>(samples * pixels * stored_channels / 4),
            RowsBody<PlaneValue>{s, rows, channels, stored_channels, pixels, {planes, channels, pixels}});
}

void bytes_to_rows(cudaStream_t stream, Storage s, const ByteImages& in, void* rows, std::int64_t stored_channels) {
  each_quad(stream, static_cast<std::size_t>(in.samples * in.size * in.size * stored_channels / 4),
            RowsBody<ByteValue>{s, rows, in.channels, stored_channels, in.size * in.size, {in}});
}

}  // namespace kernels
}  // namespace paceline::train::cuda
