// SPDX-License-Identifier: Apache-2.0
// Kernels of the loss, and of sums over samples for each output of a linear layer.
#include "trainer/backend/cuda/quads.cuh"

namespace paceline::train::cuda {
namespace {

// ---- loss: a block for each sample ----

constexpr unsigned loss_threads = 128;

// The sum of all threads' values: the same for all threads.
__device__ double sum_over_threads(double own) {
  __shared__ double sums[loss_threads];
  __syncthreads();  // a thread may still read the sum before
  sums[threadIdx.x] = own;
  __syncthreads();
  for (unsigned half = loss_threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  return sums[0];
}

struct Top {
  float value;
  long long position;
};

// The largest logit, the first of equal ones, and Σ exp(logit − largest): the same for all threads.
__device__ double softmax_sum(const float* row, std::int64_t classes, Top& top) {
  __shared__ Top tops[loss_threads];
  Top own{row[0], 0};
  for (std::int64_t c = threadIdx.x; c < classes; c += loss_threads) {
    if (row[c] > own.value) own = {row[c], c};
  }
  tops[threadIdx.x] = own;
  __syncthreads();
  for (unsigned half = loss_threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const Top other = tops[threadIdx.x + half];
      Top& mine = tops[threadIdx.x];
      if (other.value > mine.value || (other.value == mine.value && other.position < mine.position)) mine = other;
    }
    __syncthreads();
  }
  top = tops[0];
  double sum = 0;
  for (std::int64_t c = threadIdx.x; c < classes; c += loss_threads)
    sum += exp(static_cast<double>(row[c]) - top.value);
  return sum_over_threads(sum);
}

// The mean of a row's logits: the same for all threads.
__device__ double row_mean(const float* row, std::int64_t classes) {
  double sum = 0;
  for (std::int64_t c = threadIdx.x; c < classes; c += loss_threads) sum += row[c];
  return sum_over_threads(sum) / static_cast<double>(classes);
}

__global__ void __launch_bounds__(loss_threads)
    cross_entropy_kernel(const float* logits, const std::int32_t* labels, std::int64_t classes, double smoothing,
                         double* losses) {
  const float* row = logits + blockIdx.x * classes;
  const std::int32_t label = labels[blockIdx.x];
  Top top{};
  const double sum = softmax_sum(row, classes, top);
  const double smoothed = smoothing > 0 ? smoothing * (row[label] - row_mean(row, classes)) : 0;
  double above = 0;
  for (std::int64_t c = threadIdx.x; c < classes; c += loss_threads) above += row[c] > row[label];
  above = sum_over_threads(above);
  if (threadIdx.x != 0) return;
  double* const of_sample = losses + 3 * blockIdx.x;
  of_sample[0] = log(sum) + top.value - row[label] + smoothed;
  of_sample[1] = top.position == label;
  of_sample[2] = above < 5;
}

__global__ void __launch_bounds__(loss_threads)
    add_scores_kernel(const double* losses, std::int64_t samples, BatchScore* score) {
  double loss = 0, correct = 0, in_top_5 = 0;
  for (std::int64_t i = threadIdx.x; i < samples; i += loss_threads) {
    loss += losses[3 * i];
    correct += losses[3 * i + 1];
    in_top_5 += losses[3 * i + 2];
  }
  loss = sum_over_threads(loss);
  correct = sum_over_threads(correct);
  in_top_5 = sum_over_threads(in_top_5);
  if (threadIdx.x != 0) return;
  score->loss_sum = loss;
  score->correct = static_cast<long long>(correct);
  score->in_top_5 = static_cast<long long>(in_top_5);
}

__global__ void __launch_bounds__(loss_threads)
    cross_entropy_backward_kernel(Storage s, const float* logits, const std::int32_t* labels, std::int64_t classes,
                                  double smoothing, const Step* step, void* gradient) {
  const double of_each = smoothing / static_cast<double>(classes);
  const float* row = logits + blockIdx.x * classes;
  Top top{};
  const double sum = softmax_sum(row, classes, top);
  const double factor = step->loss_gradient;
  for (std::int64_t c = threadIdx.x; c < classes; c += loss_threads) {
    const double probability = exp(static_cast<double>(row[c]) - top.value) / sum;
    const double value = factor * (probability - of_each - (c == labels[blockIdx.x] ? 1 - smoothing : 0));
    store1(gradient, s, blockIdx.x * classes + c, static_cast<float>(value));
  }
}

// A block has thirty-two columns with eight threads each.
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

}  // namespace

namespace kernels {

void linear_bias_gradient(cudaStream_t stream, Storage s, const void* dy, float* gradient, Step* step,
                          std::int64_t samples, std::int64_t outputs) {
  launch(column_sums_kernel, static_cast<unsigned>((outputs + 31) / 32), dim3(32, 8), stream, s, dy, gradient, step,
         samples, outputs);
}

void cross_entropy(cudaStream_t stream, const float* logits, const std::int32_t* labels, std::int64_t samples,
                   std::int64_t classes, double smoothing, double* losses, BatchScore* score) {
  launch(cross_entropy_kernel, static_cast<unsigned>(samples), loss_threads, stream, logits, labels, classes, smoothing,
         losses);
  launch(add_scores_kernel, 1, loss_threads, stream, losses, samples, score);
}

void cross_entropy_backward(cudaStream_t stream, Storage s, const float* logits, const std::int32_t* labels,
                            std::int64_t samples, std::int64_t classes, double smoothing, const Step* step,
                            void* gradient) {
  launch(cross_entropy_backward_kernel, static_cast<unsigned>(samples), loss_threads, stream, s, logits, labels,
         classes, smoothing, step, gradient);
}

}  // namespace kernels
}  // namespace paceline::train::cuda
