// SPDX-License-Identifier: Apache-2.0
// A trainable model: the interface between the training loop and the backend that computes a network.
//
// All weights lie in one flat fp32 buffer and all gradients in another of the same shape. Each parameter is a span of
// both. A backend may keep a parameter in a blocked layout: element-wise work (optimizers, the sum over ranks) is
// independent of the layout, and to_plain() gives the published layout (OIHW, …) for checkpoints and comparisons.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/nn/image_cut.h"

#include "trainer/nn/memory.h"

namespace paceline::train {

enum class Mode { train, evaluate };

struct Parameter {
  std::string name;                 // torchvision's, e.g. "layer1.0.conv1.weight"
  std::size_t offset = 0;           // first element in the flat buffers
  std::size_t size = 0;             // elements there, padding included; padding stays zero
  std::vector<std::int64_t> shape;  // as published
  bool batch_norm = false;          // scale or shift of a batch norm
};

struct Score {
  double loss_sum = 0;  // the sum over the samples, not their mean, so that batches and ranks can be added
  std::int64_t correct = 0;
  std::int64_t samples = 0;
  std::int64_t in_top_5 = 0;  // samples with fewer than five logits above their label's

  Score& operator+=(const Score& other) {
    loss_sum += other.loss_sum;
    correct += other.correct;
    samples += other.samples;
    in_top_5 += other.in_top_5;
    return *this;
  }
};

// Called before and after every layer's forward or backward, for the ranges that profilers show.
struct LayerObserver {
  virtual ~LayerObserver() = default;
  virtual void begin(const std::string& layer, Mode mode, bool backward) = 0;
  virtual void end() = 0;
};

// Images as they are stored, for a model that normalises, cuts and mirrors them itself.
struct StoredImages {
  std::span<const std::uint8_t> planes;  // samples × channels × height × width
  std::span<const ImageCut> cuts;        // one for each sample
  std::array<float, 3> mean{}, scale{};  // by channel: the network sees (byte − mean) × scale
};

class Model {
 public:
  virtual ~Model() = default;

  // images: samples × channels × height × width in fp32. labels: one for each sample. There are at most as many samples
  // as the batch size given at construction, and exactly as many in Mode::train, which keeps the tensors that backward
  // needs. Returns sums over these samples.
  virtual Score forward(std::span<const float> images, std::span<const std::int32_t> labels, Mode mode) = 0;

  // The same for images in their stored form. Only if takes_stored_images().
  virtual bool takes_stored_images() const { return false; }
  virtual Score forward_stored(const StoredImages&, std::span<const std::int32_t>, Mode) { return {}; }

  // The memory from which the model fetches images fastest. The model must outlive its allocations.
  virtual std::pmr::memory_resource* image_memory() { return std::pmr::new_delete_resource(); }

  // Announces images that a later forward() will take, and that stay in place until then, so that a model on another
  // device can copy them meanwhile. Only one batch can be announced at a time. The results do not depend on it.
  virtual void prefetch(std::span<const float>) {}
  virtual void prefetch(const StoredImages&) {}

  // Seeds the dropout masks of the following forward() calls in Mode::train: the masks of the n-th call are a function
  // of seed, n and the layer alone. Without this call they follow from the model's own seed.
  virtual void seed_dropout(std::uint64_t) {}

  // Overwrites gradients() with the gradients of loss_sum × scale. Comes after forward in Mode::train.
  virtual void backward(float scale) = 0;

  virtual std::span<float> weights() = 0;
  virtual std::span<float> gradients() = 0;

  // The stream, a cudaStream_t, in which the model computes; null on the host.
  virtual void* stream() { return nullptr; }

  // The memory of weights, gradients and statistics. It may be the GPU's, so the host reads and writes them through
  // memory().copy(), to_plain() and from_plain(). The model does not use them after any of its functions has returned.
  virtual Memory& memory() { return host_memory(); }

  // Makes backward write the gradients to this buffer from now on, and gradients() return it. The buffer has as many
  // values as before, zeroed, aligned to 64 bytes, in memory(). The caller keeps it alive.
  virtual void set_gradients(std::span<float> buffer) = 0;

  virtual const std::vector<Parameter>& parameters() const = 0;

  // The running means and variances of the batch norms in one flat buffer. Evaluation averages them over the ranks.
  virtual std::span<float> statistics() = 0;

  // Converts a parameter's weights or gradients to the published layout and back. `flat` is in memory() or the host's.
  virtual std::vector<float> to_plain(const Parameter& parameter, std::span<const float> flat) const = 0;
  virtual void from_plain(const Parameter& parameter, std::span<const float> plain, std::span<float> flat) const = 0;

  // The first layer whose output holds a value that is not finite; empty if there is none. Call it right after forward
  // in Mode::train, because backward overwrites outputs. The cost is linear in the activations.
  virtual std::string first_nonfinite_layer() const = 0;

  // The bytes of its memory that the model has reserved but that the system has not filled yet. The first step fills
  // them.
  virtual std::size_t unfilled_bytes() const { return 0; }

  // The first layer for which the library of the backend has no fast code on this processor; empty if there is none.
  virtual std::string first_slow_layer() const { return {}; }

  // 2 × multiply-adds of convolutions and linear layers: forward, plus both gradients, less the stem's data gradient.
  virtual double train_flops_per_image() const = 0;

  LayerObserver* observer = nullptr;

  // backward() calls it from its own thread as soon as the gradients of parameters()[first] … [first + count − 1] are
  // final, or will be when stream() has finished its present work. Each backward reports each parameter once, the last
  // layer's first.
  std::function<void(std::size_t first, std::size_t count)> gradients_ready;

  // After backward(): whether it must be called again with the same scale, because its gradients left the range of the
  // type (f16). True only if gradients_ready has already reported them; otherwise backward() repeats itself until they
  // fit.
  virtual bool wants_backward_again() const { return false; }
};

// The statistics that batch norms use in training, and those that they keep for evaluation.
struct BatchNormOptions {
  // Ghost batch norm (Hoffer, Hubara and Soudry, arXiv 1705.08741, algorithm 1): the number of samples in a virtual
  // batch with statistics of its own; the last one may be smaller. The running statistics are updated once per virtual
  // batch. 0: the whole batch is one.
  std::int64_t ghost_batch = 0;

  // Synchronised batch norm (ChainerMN's MultiNodeBatchNormalization): a function that replaces this rank's sums by the
  // sums over all ranks: [Σx, Σx², count] in forward and [Σdy, Σdy·x̂] in backward, each once per layer. All ranks then
  // normalise with the statistics of the whole batch. Empty: each rank uses its own statistics.
  std::function<void(std::span<double>)> sum_over_ranks;

  // The weight of a batch's statistics in the running ones; PyTorch's momentum, or 1 − Chainer's decay. With 1,
  // evaluation uses the statistics of the last batch (Akiba et al., arXiv 1711.04325, 3.2).
  float momentum = 0.1f;
};

struct ModelOptions {
  std::string name = "resnet18";  // torchvision's names, and vgg_lecture
  std::int64_t batch_size = 32;
  std::int64_t image_size = 32;
  std::int64_t channels = 3;
  std::int64_t classes = 10;
  std::uint64_t seed = 1;          // of the initial weights
  bool freeze_batch_norm = false;  // normalise with the running statistics, do not update them
  BatchNormOptions batch_norm;     // without effect on frozen batch norms
  bool cifar_stem = true;          // 3×3 stem of stride 1 without max-pooling
  bool resnet_v1 = false;          // ResNets: a bottleneck has its stride in the first 1×1 convolution
  bool zero_gamma = false;         // ResNets: the last batch norm of each block starts with scale 0
  double label_smoothing = 0;  // of the training loss (Szegedy et al., arXiv 1512.00567, 7): this share of the label is
                               // spread evenly over all classes, as in PyTorch's cross-entropy
  double width = 1;            // factor of the published numbers of channels, rounded to multiples of 4
  bool winograd = true;        // 3×3 convolutions by Winograd's algorithm where that is faster: about half the
                               // time for a few times the rounding error

  std::string dtype = "f32";  // of the arithmetic: f32, bf16; on GPUs also tf32, f16. Weights and statistics stay fp32

  // On CPUs.
  std::size_t memory_limit = 0;  // limit of the bytes that the model may allocate; 0: none

  // On GPUs.
  std::string plan_cache;    // file of cuDNN's fastest plans; empty: no file
  bool fuse = true;          // f16: fuse batch norms into the neighbouring convolutions where cuDNN can
  bool cuda_graphs = false;  // capture forward and backward once and launch them as graphs
};

// Throws Error (usage) for an unknown name, if bf16 is not available here, and if the model needs more memory than its
// limit.
std::unique_ptr<Model> make_cpu_model(const ModelOptions& options);

}  // namespace paceline::train
