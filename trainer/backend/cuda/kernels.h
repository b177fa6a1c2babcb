// SPDX-License-Identifier: Apache-2.0
// Our own kernels on activations: everything but convolutions and matrix products. Tensors are rows × channels, where a
// row is a pixel of a sample (NHWC), channels a multiple of four, of the given storage. All pointers are device
// pointers. The functions queue kernels in the stream and return; they throw Error if a launch fails. Equal input gives
// equal bits: sums over blocks have a fixed order, and no kernel uses atomic additions.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "trainer/backend/cuda/precision.h"
#include "trainer/nn/image_cut.h"

namespace paceline::train::cuda {

// Values that change from step to step. They are in GPU memory, so that a captured graph does not have to change.
struct Step {
  float loss_gradient = 1;  // factor of the gradient of the logits: the caller's × the loss scale
  float unscale = 1;        // of the gradients of weights: 1 ÷ loss scale
  unsigned overflow = 0;    // set where one of these is not finite
  unsigned reserved = 0;
  std::uint64_t dropout = 0;  // names the masks
};

// The Score of a batch.
struct BatchScore {
  double loss_sum = 0;
  long long correct = 0;
  long long in_top_5 = 0;
};

struct Rows {  // of the tensors of a channel-wise kernel
  std::int64_t rows = 0, channels = 0;
};

// The bytes of the partial sums of blocks, for channel sums of a tensor with this number of channels.
std::size_t partial_sum_bytes(std::int64_t channels);

namespace kernels {

// ---- element-wise, `count` a multiple of four or the buffers filled up to one ----
void relu(cudaStream_t, Storage, const void* x, void* y, std::size_t count);
void add_relu(cudaStream_t, Storage, const void* a, const void* b, void* y, std::size_t count);
void add(cudaStream_t, Storage, const void* a, const void* b, void* sum, std::size_t count);
// dx = (dy + other) where y > 0, else 0; other may be null.
void relu_backward(cudaStream_t, Storage, const void* y, const void* dy, const void* other, void* dx,
                   std::size_t count);
// Inverted dropout by a hash of (step's number, layer, element); backward makes the same mask of dy.
void dropout(cudaStream_t, Storage, const void* x, void* y, std::size_t count, float drop, std::uint64_t layer,
             const Step* step);

// ---- casts between fp32 and a storage ----
void narrow(cudaStream_t, Storage, const float* from, void* to, std::size_t count);
// to = from × step->unscale; marks an overflow. From and to may be the same where the storage is f32.
void take_gradient(cudaStream_t, Storage, const void* from, float* to, std::size_t count, Step* step);
// flag = 1 where a value is not finite.
void find_nonfinite(cudaStream_t, Storage, const void* values, std::size_t count, unsigned* flag);

// ---- by channel ----
// y = y + bias, then max(0, ·) if relu; in place.
void add_bias(cudaStream_t, Storage, void* y, const float* bias, bool relu, Rows);
// gradient = Σ dy over the rows × step->unscale.
void bias_gradient(cudaStream_t, Storage, const void* dy, double* partials, float* gradient, Step* step, Rows);
// The same for a linear layer with any number of outputs.
void linear_bias_gradient(cudaStream_t, Storage, const void* dy, float* gradient, Step* step, std::int64_t samples,
                          std::int64_t outputs);

// sums: Σx, Σx² by channel, then the number of rows: 2 × channels + 1 values.
void channel_moments(cudaStream_t, Storage, const void* x, double* partials, double* sums, Rows);
// sums: two by channel, of fp32, one after the other, then the number of rows if not negative.
void widen_sums(cudaStream_t, const float* first, const float* second, std::int64_t channels, std::int64_t rows,
                double* sums);
// Computes statistics from sums over these rows or over all ranks: the biased variance for normalising, the unbiased
// one for the running statistics, which move by `momentum`.
void set_statistics(cudaStream_t, const double* sums, std::int64_t channels, float momentum, float* running_mean,
                    float* running_variance, float* mean, float* inverse_deviation);
// From the running statistics.
void use_running_statistics(cudaStream_t, const float* running_mean, const float* running_variance,
                            std::int64_t channels, float* mean, float* inverse_deviation);

// What a batch norm was normalised with, and its parameters: all by channel.
struct Norm {
  const float *mean, *inverse_deviation, *scale, *shift;
};
// The same as one factor and one summand, rounded to the storage: the summand after the factor, so that the mean stays
// where it is.
void scale_and_shift(cudaStream_t, Storage, Norm, std::int64_t channels, void* scale, void* shift);
// y = (x − mean) × inverse_deviation × scale + shift, + residual if not null, then max(0, ·) if relu.
void normalise(cudaStream_t, Storage, const void* x, const void* residual, void* y, bool relu, Norm, Rows);

// Where y = relu(…) hides some of dy: by y itself, or, of a batch norm without a residual, by its formula on x again,
// which costs one read less.
enum class Mask { none, by_output, by_formula };
struct NormBackward {
  const void *x, *y;       // y: of Mask::by_output
  const void *dy, *other;  // the gradient is their sum; other may be null
  void* masked;            // where the masked sum goes, if not null; may be dy or other
  Mask mask;
};
// sums: Σdy, Σdy x̂ by channel: 2 × channels values. x̂ = (x − mean) × inverse_deviation.
void channel_gradients(cudaStream_t, Storage, const NormBackward&, double* partials, double* sums, Norm, Rows);
// scale_gradient = Σdy x̂ × unscale, shift_gradient = Σdy × unscale; added to what is there if `add`.
void norm_parameter_gradients(cudaStream_t, const double* sums, std::int64_t channels, bool add, float* scale_gradient,
                              float* shift_gradient, Step* step);
// dx = scale × inverse_deviation × (dy − Σdy ÷ n − x̂ Σdy x̂ ÷ n), n = *count. sums null: the statistics are constants.
// Reads `masked` where there is one, else dy, other and the mask again.
void normalise_backward(cudaStream_t, Storage, const NormBackward&, const double* sums, const double* count, void* dx,
                        Norm, Rows);

// ---- pooling; images of `channels` ----
struct Pool {
  std::int64_t samples, channels, height, width, out_height, out_width, kernel, stride, padding;
};
// where: of each maximum, its position in the window, row by row; a byte a value. The first of equal ones.
void max_pool(cudaStream_t, Storage, const void* x, void* y, std::uint8_t* where, const Pool&);
void max_pool_backward(cudaStream_t, Storage, const void* dy, const std::uint8_t* where, void* dx, const Pool&);
void average_pool(cudaStream_t, Storage, const void* x, void* y, const Pool&);  // of stride kernel, no padding
void average_pool_backward(cudaStream_t, Storage, const void* dy, void* dx, const Pool&);

// ---- loss: softmax and cross-entropy of `samples` rows of `classes` fp32 logits ----
// losses: samples × 3 doubles of scratch. score: the sums over the rows. smoothing: the share of each label that is
// spread evenly over all classes.
void cross_entropy(cudaStream_t, const float* logits, const std::int32_t* labels, std::int64_t samples,
                   std::int64_t classes, double smoothing, double* losses, BatchScore* score);
// gradient = step->loss_gradient × d Σ loss / d logits.
void cross_entropy_backward(cudaStream_t, Storage, const float* logits, const std::int32_t* labels,
                            std::int64_t samples, std::int64_t classes, double smoothing, const Step* step,
                            void* gradient);

// ---- input ----
// fp32 channel planes → rows of stored_channels, those beyond `channels` zero.
void planes_to_rows(cudaStream_t, Storage, const float* planes, void* rows, std::int64_t samples, std::int64_t channels,
                    std::int64_t stored_channels, std::int64_t pixels);

// Images of bytes with their cuts.
struct ByteImages {
  const std::uint8_t* planes;  // samples × channels × size × size
  const ImageCut* cuts;        // one a sample
  float mean[4], scale[4];     // (byte − mean) × scale; what a shift brings in from outside is 0
  std::int64_t samples, channels, size;
};
void bytes_to_rows(cudaStream_t, Storage, const ByteImages&, void* rows, std::int64_t stored_channels);

}  // namespace kernels
}  // namespace paceline::train::cuda
