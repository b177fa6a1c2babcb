// SPDX-License-Identifier: Apache-2.0
// What turns an averaged gradient into new weights. One file per rule; the formulas are in their headers.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trainer/core/slice.h"
#include "trainer/nn/model.h"

namespace paceline::train {

// Weight decay as a term of the loss, except for AdamW (adam.h): the gradient g of a weight w becomes g + rate × w,
// before anything else is done with it (Goyal et al., arXiv 1706.02677, 3: scaling the loss or the learning rate is
// then not the same thing).
struct WeightDecay {
  float rate = 0;
  bool batch_norm = true;  // scales and shifts too; without: Goyal et al., 5.1
  bool biases = true;      // of convolutions and linear layers too
};

// A part of the flat buffers with one weight decay, at most as long as one thread takes at a time.
struct Chunk {
  std::size_t first = 0, count = 0;
  float weight_decay = 0;
  std::size_t parameter = 0;  // position in the model's list
  bool excluded = false;      // from weight decay, and so from LARS's rates
  bool frozen = false;        // its weights stay as they are
};

// Cuts `elements`, the length of the flat buffers, at each parameter and into chunks. Padding between two parameters
// goes with the first. Parameters whose names begin with one of `frozen` are frozen.
std::vector<Chunk> chunks_of(const std::vector<Parameter>& parameters, std::size_t elements, const WeightDecay& decay,
                             std::span<const std::string> frozen = {});

// The parts of the chunks that lie in the shard, with positions from its start on.
std::vector<Chunk> chunks_within(const std::vector<Chunk>& chunks, Slice shard);

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // One step with this learning rate; one pass over the arrays on all OpenMP threads, the same result for any number of
  // them. Throws std::invalid_argument where the arrays are not of the length that the optimizer was made for.
  void step(std::span<float> weights, std::span<const float> gradients, float rate);

  // The gradients of a step are there when this stream, a cudaStream_t, has come to where it is then; null: at once.
  virtual void follow(void*) {}

  // The state that a checkpoint must keep beside the weights: arrays as long as shard(), and single numbers, which
  // are finite. The next step uses what is written to them; a reference is valid until then.
  virtual std::vector<std::vector<float>>& arrays() { return arrays_; }
  std::vector<double>& scalars() { return scalars_; }

  virtual std::string name() const = 0;  // one of optimizer_names()

  // The part of the flat buffers that the optimizer was made for. step() takes these parts of weights and gradients,
  // and arrays() are as long.
  Slice shard() const { return {first_, elements_}; }
  void set_first(std::size_t first) { first_ = first; }

  // Sets the position of the run, in passes over the data, before each step. May be called from another thread. Only
  // RMSprop warm-up uses it.
  void at_epoch(double epoch) { epoch_ = epoch; }

 protected:
  Optimizer(std::vector<Chunk> chunks, std::size_t arrays, std::size_t scalars);
  virtual void update(std::span<float> weights, std::span<const float> gradients, float rate) = 0;

  // Calls body(chunk, its index) for every chunk that is not frozen, on all threads.
  void on_all_chunks(const std::function<void(const Chunk&, std::size_t)>& body) const;
  const std::vector<Chunk>& chunks() const { return chunks_; }
  double epoch() const { return epoch_; }

  std::vector<std::vector<float>> arrays_;
  std::vector<double> scalars_;

 private:
  std::vector<Chunk> chunks_;
  std::size_t first_ = 0, elements_ = 0;
  std::atomic<double> epoch_ = 0;
};

// The settings of all optimizers; each optimizer uses its own.
struct OptimizerOptions {
  std::string name = "sgd";  // one of optimizer_names()
  WeightDecay weight_decay;
  std::vector<std::string> frozen;      // beginnings of the names of parameters that stay as they are; on CPUs
  double momentum = 0.9;                // sgd, lars, rmsprop_warmup (μ₁)
  bool nesterov = false;                // sgd
  std::string rate_position = "after";  // sgd: after, inside, corrected; see sgd.h
  double trust = 0.001;                 // lars: η
  double lars_threshold = 0;            // lars: of the weights' norm
  double beta1 = 0.9, beta2 = 0.999;    // adam, adamw
  double epsilon = 1e-8;                // adam, adamw, rmsprop_warmup
  double rms_decay = 0.99;              // rmsprop_warmup: μ₂
  double rms_rate = 3e-4;               // rmsprop_warmup: η_RMSprop
  double rms_center = 10, rms_period = 5;
  bool rms_printed_slope = false;
};

// Clipping by the global norm, as PyTorch's clip_grad_norm_: the number by which a gradient with this Σ g² is divided
// so that its norm is at most `most`; 1 if it is not larger. Pascanu et al., arXiv 1211.5063, algorithm 1.
double clip_divisor(double squares, double most);

}  // namespace paceline::train
