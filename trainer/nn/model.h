// A trainable model: what the training loop sees of a network, whatever backend computes it.
//
// All weights lie in one flat fp32 buffer, all gradients in another of the same shape, each parameter a span of both.
// A backend may keep a parameter in a blocked layout; element-wise work (optimizers, the sum over ranks) does not
// care, and to_plain() gives the published layout (OIHW, …) for checkpoints and comparisons.
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
  double loss_sum = 0;  // over the samples, not their mean: sums can be added over batches and ranks
  std::int64_t correct = 0;
  std::int64_t samples = 0;

  Score& operator+=(const Score& other) {
    loss_sum += other.loss_sum;
    correct += other.correct;
    samples += other.samples;
    return *this;
  }
};

// Opened and closed around every layer's forward or backward, for the ranges that profilers show.
struct LayerObserver {
  virtual ~LayerObserver() = default;
  virtual void begin(const std::string& layer, Mode mode, bool backward) = 0;
  virtual void end() = 0;
};

// Images as they are stored, for a model that normalises, cuts and mirrors them itself.
struct StoredImages {
  std::span<const std::uint8_t> planes;  // samples × channels × height × width
  std::span<const ImageCut> cuts;        // one a sample
  std::array<float, 3> mean{}, scale{};  // by channel: the network sees (byte − mean) × scale
};

class Model {
 public:
  virtual ~Model() = default;

  // images: samples × channels × height × width, plain, fp32; labels: one a sample. samples ≤ the batch size given at
  // construction, and equal to it in Mode::train, which keeps what backward needs. Returns sums over these samples.
  virtual Score forward(std::span<const float> images, std::span<const std::int32_t> labels, Mode mode) = 0;

  // The same of images as they are stored; only where takes_stored_images().
  virtual bool takes_stored_images() const { return false; }
  virtual Score forward_stored(const StoredImages&, std::span<const std::int32_t>, Mode) { return {}; }

  // Memory from which the model fetches images fastest. The model must outlive what is allocated there.
  virtual std::pmr::memory_resource* image_memory() { return std::pmr::new_delete_resource(); }

  // Images that will stay where they are until a following forward() takes them, the only one so announced: a model on
  // another device fetches them meanwhile. Without effect on what is computed.
  virtual void prefetch(std::span<const float>) {}
  virtual void prefetch(const StoredImages&) {}

  // Names the dropout masks of the following forward() calls in Mode::train: the n-th since then has masks that are a
  // function of seed, n and the layer alone. Unless called, the masks follow from the model's construction.
  virtual void seed_dropout(std::uint64_t) {}

  // Gradients of loss_sum × scale, overwritten in gradients(). After forward in Mode::train.
  virtual void backward(float scale) = 0;

  virtual std::span<float> weights() = 0;
  virtual std::span<float> gradients() = 0;

  // The stream of a device that it computes in, a cudaStream_t; null on the host.
  virtual void* stream() { return nullptr; }

  // Where weights, gradients and statistics lie. The model is done with them whenever one of its functions returns.
  virtual Memory& memory() { return host_memory(); }

  // Where backward writes the gradients from now on and what gradients() gives: as many values, zeroed, 64-byte
  // aligned, of memory(); the caller keeps them alive.
  virtual void set_gradients(std::span<float> buffer) = 0;

  virtual const std::vector<Parameter>& parameters() const = 0;

  // Running means and variances of the batch norms, flat; averaged over ranks before evaluation.
  virtual std::span<float> statistics() = 0;

  // A parameter's weights or gradients in its published layout; and back.
  virtual std::vector<float> to_plain(const Parameter& parameter, std::span<const float> flat) const = 0;
  virtual void from_plain(const Parameter& parameter, std::span<const float> plain, std::span<float> flat) const = 0;

  // The first layer whose output holds a number that is not finite; empty where there is none. Right after forward in
  // Mode::train: backward writes over outputs. Linear in the activations.
  virtual std::string first_nonfinite_layer() const = 0;

  virtual double forward_flops_per_image() const = 0;  // 2 × multiply-adds of convolutions and linear layers
  virtual double train_flops_per_image() const = 0;    // forward, plus both gradients, less the stem's data gradient

  LayerObserver* observer = nullptr;

  // Called in backward, from its thread, as soon as the gradients of parameters()[first] … [first + count − 1] are what
  // they will be, or will when stream() has come to where it is now: each parameter once a backward, the last layer's
  // first.
  std::function<void(std::size_t first, std::size_t count)> gradients_ready;

  // After backward(): whether it is to be called again, with the same scale, for its gradients have left the range of
  // the type (f16). Only where gradients_ready had them already; else it has been repeated until they did not.
  virtual bool wants_backward_again() const { return false; }
};

// What batch norms normalise with while training, and what they keep for evaluation.
struct BatchNormOptions {
  // Ghost batch norm (Hoffer, Hubara and Soudry, arXiv 1705.08741, algorithm 1): statistics of so many samples at a
  // time, one virtual batch after the other; the last one may be smaller. The running statistics move once per virtual
  // batch. 0: the whole batch at once.
  std::int64_t ghost_batch = 0;

  // Synchronised batch norm (ChainerMN's MultiNodeBatchNormalization): called with sums of this rank, replaces them by
  // those over all ranks: [Σx, Σx², count] in forward, [Σdy, Σdy·x̂] in backward, once per layer each. All ranks then
  // normalise with the statistics of the whole batch. Empty: each rank with its own.
  std::function<void(std::span<double>)> sum_over_ranks;

  // Weight of the batch's statistics in the running ones; PyTorch's momentum, 1 − Chainer's decay. 1: evaluation uses
  // those of the last batch, without a moving average (Akiba et al., arXiv 1711.04325, 3.2).
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
  BatchNormOptions batch_norm;     // where it is not frozen
  bool cifar_stem = true;          // 3×3 stem of stride 1 without max-pooling
  bool resnet_v1 = false;          // ResNets: a bottleneck has its stride in the first 1×1 convolution
  bool zero_gamma = false;         // ResNets: the last batch norm of each block starts with scale 0
  double width = 1;                // times the published numbers of channels, to multiples of 4
  bool winograd = true;            // 3×3 convolutions by Winograd's algorithm where that is faster: about half the
                                   // time for a few times the rounding error

  std::string dtype = "f32";  // of the arithmetic: f32, bf16; on GPUs also tf32, f16. Weights and statistics stay fp32

  // On CPUs.
  std::size_t memory_limit = 0;  // bytes, of all that the model keeps; 0: none

  // On GPUs.
  std::string plan_cache;    // file of cuDNN's fastest plans; empty: none is kept
  bool fuse = true;          // f16: batch norms in the kernels of the convolutions beside them, where cuDNN has such
  bool cuda_graphs = false;  // forward and backward are captured once and then started whole
};

// Throws std::invalid_argument with the list of known names, where bf16 is wished and not to be had, and where the
// model would need more memory than its limit.
std::unique_ptr<Model> make_cpu_model(const ModelOptions& options);

}  // namespace paceline::train
