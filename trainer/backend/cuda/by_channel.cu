// SPDX-License-Identifier: Apache-2.0
// Kernels on rows × channels: biases and batch norms, and the sums that these need.
#include "trainer/backend/cuda/quads.cuh"

namespace paceline::train::cuda {
namespace {

constexpr int block_quads = 16, block_rows = 16;  // threads of a block of a channel-wise kernel
constexpr int sum_blocks = 1024;                  // that sums are spread over, all columns together

// ---- by channel: a thread has four channels and goes down the rows ----

template <class Body>
__global__ void __launch_bounds__(block_quads* block_rows) each_row_kernel(Body body, Rows extent) {
  const std::int64_t quads = extent.channels / 4,
                     quad = static_cast<std::int64_t>(blockIdx.y) * block_quads + threadIdx.x;
  if (quad >= quads) return;
  const auto of_channels = body.of(quad);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * block_rows;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * block_rows + threadIdx.y; row < extent.rows;
       row += step) {
    of_channels(static_cast<std::size_t>(row * quads + quad));
  }
}

dim3 grid_of(Rows extent, std::int64_t blocks, std::int64_t rows_a_block) {
  const std::int64_t columns = (extent.channels / 4 + block_quads - 1) / block_quads;
  const std::int64_t most = std::max<std::int64_t>(1, (extent.rows + rows_a_block - 1) / rows_a_block);
  return dim3(static_cast<unsigned>(std::clamp<std::int64_t>(blocks / columns, 1, most)),
              static_cast<unsigned>(columns));
}

template <class Body>
void each_row(cudaStream_t stream, Rows extent, Body body) {
  launch(each_row_kernel<Body>, grid_of(extent, 16384, 4 * block_rows), dim3(block_quads, block_rows), stream, body,
         extent);
}

// Adds up what `terms` adds to eight numbers, two for each channel, over the rows: fp32 over eight rows, then fp64.
// partials[block of rows][first or second number][channel].
template <class Terms>
__global__ void __launch_bounds__(block_quads* block_rows) sum_rows_kernel(Terms terms, Rows extent, double* partials) {
  __shared__ double shared[block_rows][block_quads][8];
  const std::int64_t quads = extent.channels / 4,
                     quad = static_cast<std::int64_t>(blockIdx.y) * block_quads + threadIdx.x;
  double total[8] = {};
  if (quad < quads) {
    const auto of_channels = terms.of(quad);
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * block_rows;
    float part[8] = {};
    int rows = 0;
    for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * block_rows + threadIdx.y; row < extent.rows;
         row += step) {
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
__global__ void finish_sums_kernel(const double* partials, int blocks, std::int64_t channels, double rows,
                                   double* sums) {
  const std::int64_t channel = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (channel >= channels) return;
  for (int k = 0; k < 2; ++k) {
    double sum = 0;
    for (int b = threadIdx.x; b < blocks; b += 32)
      sum += partials[(static_cast<std::int64_t>(b) * 2 + k) * channels + channel];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
    if (threadIdx.x == 0) sums[k * channels + channel] = sum;
  }
  if (channel == 0 && threadIdx.x == 0 && rows >= 0) sums[2 * channels] = rows;
}

template <class Terms>
void sum_rows(cudaStream_t stream, Rows extent, Terms terms, double* partials, double rows, double* sums) {
  const dim3 grid = grid_of(extent, sum_blocks, 4 * block_rows);
  launch(sum_rows_kernel<Terms>, grid, dim3(block_quads, block_rows), stream, terms, extent, partials);
  launch(finish_sums_kernel, static_cast<unsigned>((extent.channels + 7) / 8), dim3(32, 8), stream, partials,
         static_cast<int>(grid.x), extent.channels, rows, sums);
}

__device__ void accumulate(float (&part)[8], float4 first, float4 second) {
  part[0] += first.x, part[1] += first.y, part[2] += first.z, part[3] += first.w;
  part[4] += second.x, part[5] += second.y, part[6] += second.z, part[7] += second.w;
}
__device__ float4 times(float4 a, float4 b) {
  return map(a, b, [](float x, float y) { return x * y; });
}
__device__ float4 of_channels4(const float* values, std::int64_t quad) {
  return reinterpret_cast<const float4*>(values)[quad];
}

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
  // Forward and backward round in the same way, because backward takes the ReLU's mask from the sign of this value.
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

// The masked gradient. hat: the normalised x.
__device__ float4 masked_gradient(const kernels::NormBackward& b, Storage s, std::size_t at, const Norm4& n,
                                  float4 hat) {
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
    return make_float4(static_cast<float>(four[0] / n), static_cast<float>(four[1] / n),
                       static_cast<float>(four[2] / n), static_cast<float>(four[3] / n));
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
  double variance = sums[channels + c] / n - average * average;  // fp64 keeps the difference accurate
  if (variance < 0) variance = 0;
  mean[c] = static_cast<float>(average);
  inverse_deviation[c] = inverse_of(variance);
  const double unbiased = n > 1 ? variance * (n / (n - 1)) : variance;
  running_mean[c] = static_cast<float>(running_mean[c] + momentum * (average - running_mean[c]));
  running_variance[c] = static_cast<float>(running_variance[c] + momentum * (unbiased - running_variance[c]));
}

__global__ void widen_sums_kernel(const float* first, const float* second, std::int64_t channels, double rows,
                                  double* sums) {
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= channels) return;
  sums[c] = first[c];
  sums[channels + c] = second[c];
  if (c == 0 && rows >= 0) sums[2 * channels] = rows;
}

__global__ void scale_and_shift_kernel(kernels::Norm norm, std::int64_t channels, Storage s, void* scale, void* shift) {
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= channels) return;
  store1(scale, s, static_cast<std::size_t>(c), norm.inverse_deviation[c] * norm.scale[c]);
  const float factor = load1(scale, s, static_cast<std::size_t>(c));
  store1(shift, s, static_cast<std::size_t>(c), norm.shift[c] - norm.mean[c] * factor);
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

}  // namespace

std::size_t partial_sum_bytes(std::int64_t channels) {
  const std::int64_t columns = std::max<std::int64_t>(1, (channels / 4 + block_quads - 1) / block_quads);
  const std::int64_t blocks = std::max<std::int64_t>(1, sum_blocks / columns);
  return static_cast<std::size_t>(blocks * 2 * channels + 2 * channels) * sizeof(double);
}

namespace kernels {

void add_bias(cudaStream_t stream, Storage s, void* y, const float* bias, bool relu, Rows extent) {
  each_row(stream, extent, AddBiasBody{s, y, bias, relu});
}

void bias_gradient(cudaStream_t stream, Storage s, const void* dy, double* partials, float* gradient, Step* step,
                   Rows extent) {
  double* sums = partials + partial_sum_bytes(extent.channels) / sizeof(double) - 2 * extent.channels;
  sum_rows(stream, extent, BiasTerms{s, dy}, partials, -1, sums);
  norm_parameter_gradients(stream, sums, extent.channels, false, nullptr, gradient, step);
}

void channel_moments(cudaStream_t stream, Storage s, const void* x, double* partials, double* sums, Rows extent) {
  sum_rows(stream, extent, MomentTerms{s, x}, partials, static_cast<double>(extent.rows), sums);
}

void set_statistics(cudaStream_t stream, const double* sums, std::int64_t channels, float momentum, float* running_mean,
                    float* running_variance, float* mean, float* inverse_deviation) {
  launch(set_statistics_kernel, blocks_for(channels), 128, stream, sums, channels, momentum, running_mean,
         running_variance, mean, inverse_deviation);
}

void widen_sums(cudaStream_t stream, const float* first, const float* second, std::int64_t channels, std::int64_t rows,
                double* sums) {
  launch(widen_sums_kernel, blocks_for(channels), 128, stream, first, second, channels, static_cast<double>(rows),
         sums);
}

void scale_and_shift(cudaStream_t stream, Storage s, Norm norm, std::int64_t channels, void* scale, void* shift) {
  launch(scale_and_shift_kernel, blocks_for(channels), 128, stream, norm, channels, s, scale, shift);
}

void use_running_statistics(cudaStream_t stream, const float* running_mean, const float* running_variance,
                            std::int64_t channels, float* mean, float* inverse_deviation) {
  launch(use_running_kernel, blocks_for(channels), 128, stream, running_mean, running_variance, channels, mean,
         inverse_deviation);
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
  launch(parameter_gradients_kernel, blocks_for(channels), 128, stream, sums, channels, add, scale_gradient,
         shift_gradient, step);
}

void normalise_backward(cudaStream_t stream, Storage s, const NormBackward& b, const double* sums, const double* count,
                        void* dx, Norm norm, Rows extent) {
  each_row(stream, extent, NormaliseBackwardBody{s, b, sums, count, extent.channels, dx, norm});
}

}  // namespace kernels
}  // namespace paceline::train::cuda
