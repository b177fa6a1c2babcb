// SPDX-License-Identifier: Apache-2.0
// The optimizers with their arrays on the GPU. trainer/optim/ computes the factors of each step.
#include <stdexcept>
#include <utility>

#include "trainer/backend/cuda/cuda_model.h"
#include "trainer/backend/cuda/flat.h"
#include "trainer/optim/adam.h"
#include "trainer/optim/lars.h"
#include "trainer/optim/rmsprop_warmup.h"
#include "trainer/optim/sgd.h"

namespace paceline::train::cuda {
namespace {

class CudaOptimizer : public Optimizer {
 public:
  CudaOptimizer(std::string name, std::vector<Chunk> chunks, std::size_t elements, std::size_t arrays,
                std::size_t scalars)
      : Optimizer(std::move(chunks), arrays, scalars), name_(std::move(name)) {
    std::vector<flat::Chunk> table;
    for (const Chunk& chunk : this->chunks()) {
      table.push_back({chunk.first, static_cast<std::uint32_t>(chunk.count),
                       static_cast<std::uint32_t>(chunk.parameter), chunk.weight_decay, chunk.excluded ? 1u : 0u});
    }
    chunks_ = device_buffer(table.size() * sizeof(flat::Chunk));
    PACELINE_CHECK_CUDA(cudaMemcpy(chunks_.data(), table.data(), chunks_.bytes(), cudaMemcpyHostToDevice));
    on_gpu_.chunks = chunks_.data<flat::Chunk>();
    on_gpu_.chunk_count = static_cast<std::uint32_t>(table.size());
    for (std::size_t i = 0; i < arrays; ++i) {
      Buffer& buffer = buffers_.emplace_back(device_buffer(elements * sizeof(float)));
      PACELINE_CHECK_CUDA(cudaMemset(buffer.data(), 0, buffer.bytes()));
    }
    on_gpu_.first = buffers_[0].data<float>();
    on_gpu_.second = arrays > 1 ? buffers_[1].data<float>() : nullptr;
    PACELINE_CHECK_CUDA(cudaDeviceSynchronize());  // other streams do not wait for the default one
  }

  std::string name() const override { return name_; }
  void follow(void* stream) override { followed_ = static_cast<cudaStream_t>(stream); }

  std::vector<std::vector<float>>& arrays() override {
    if (!host_is_current_) copy(cudaMemcpyDeviceToHost);
    host_is_current_ = host_may_be_written_ = true;
    return arrays_;
  }

 protected:
  virtual void start(float rate) = 0;  // queues the step's kernels in stream_

  void update(std::span<float> weights, std::span<const float> gradients, float rate) final {
    if (host_may_be_written_) copy(cudaMemcpyHostToDevice);
    host_is_current_ = host_may_be_written_ = false;
    on_gpu_.weights = weights.data();
    on_gpu_.gradients = gradients.data();
    if (followed_ != nullptr) {
      there_.record(followed_);
      there_.make_wait(stream_);
    }
    start(rate);
    stream_.synchronize();
  }

  flat::Arrays on_gpu_{};
  Stream stream_{"optimizer"};

 private:
  void copy(cudaMemcpyKind kind) {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      void *const host = arrays_[i].data(), *const gpu = buffers_[i].data();
      const bool down = kind == cudaMemcpyDeviceToHost;
      PACELINE_CHECK_CUDA(cudaMemcpyAsync(down ? host : gpu, down ? gpu : host, buffers_[i].bytes(), kind, stream_));
    }
    stream_.synchronize();
  }

  const std::string name_;
  cudaStream_t followed_ = nullptr;
  Event there_;
  Buffer chunks_;
  std::vector<Buffer> buffers_;
  bool host_is_current_ = true;       // host and device both start with zeros
  bool host_may_be_written_ = false;  // since the last step
};

class CudaSgd final : public CudaOptimizer {
 public:
  CudaSgd(std::vector<Chunk> chunks, std::size_t elements, const SgdOptions& options)
      : CudaOptimizer("sgd", std::move(chunks), elements, 1, 1), options_(options) {}

 private:
  void start(float rate) override {
    const SgdFactors f = sgd_factors(options_, scalars_[0], rate);
    scalars_[0] = rate;
    flat::step(stream_, on_gpu_, flat::Sgd{f.keep, f.take, f.of_gradient, f.of_velocity});
  }
  const SgdOptions options_;
};

class CudaAdam final : public CudaOptimizer {
 public:
  CudaAdam(std::vector<Chunk> chunks, std::size_t elements, const AdamOptions& options)
      : CudaOptimizer(options.decoupled ? "adamw" : "adam", std::move(chunks), elements, 2, 1), options_(options) {}

 private:
  void start(float rate) override {
    const AdamFactors f = adam_factors(options_, ++scalars_[0], rate);
    const flat::Adam adam{f.beta1, f.beta2, f.rate, f.deviation, f.epsilon};
    if (options_.decoupled) return flat::step(stream_, on_gpu_, flat::AdamW{adam, rate});
    flat::step(stream_, on_gpu_, adam);
  }
  const AdamOptions options_;
};

class CudaRmspropWarmup final : public CudaOptimizer {
 public:
  CudaRmspropWarmup(std::vector<Chunk> chunks, std::size_t elements, const RmspropWarmupOptions& options)
      : CudaOptimizer("rmsprop_warmup", std::move(chunks), elements, 2, 0), options_(options) {}

 private:
  void start(float rate) override {
    const WarmupFactors f = warmup_factors(options_, epoch(), rate);
    flat::step(stream_, on_gpu_, flat::RmspropWarmup{f.rate, f.momentum, f.rms_decay, f.epsilon, f.sgd, f.rms});
  }
  const RmspropWarmupOptions options_;
};

class CudaLars final : public CudaOptimizer {
 public:
  CudaLars(std::vector<Chunk> chunks, std::size_t elements, const LarsOptions& options)
      : CudaOptimizer("lars", std::move(chunks), elements, 1, 0), options_(options) {
    parameters_ = this->chunks().empty() ? 0 : static_cast<std::uint32_t>(this->chunks().back().parameter + 1);
    squares_ = device_buffer(2 * this->chunks().size() * sizeof(double));
    local_ = device_buffer(parameters_ * sizeof(double));
  }

 private:
  void start(float rate) override {
    flat::step(stream_, on_gpu_,
               flat::Lars{options_.momentum, options_.trust, options_.threshold, rate, squares_.data<double>(),
                          local_.data<double>(), parameters_});
  }
  const LarsOptions options_;
  std::uint32_t parameters_ = 0;
  Buffer squares_, local_;
};

std::unique_ptr<Optimizer> cuda_optimizer_for(const OptimizerOptions& o, const std::vector<Chunk>& chunks,
                                              std::size_t elements) {
  const auto momentum = static_cast<float>(o.momentum);
  if (o.name == "sgd") {
    return std::make_unique<CudaSgd>(
        chunks, elements, SgdOptions{momentum, o.weight_decay.rate, o.nesterov, rate_position_of(o.rate_position)});
  }
  if (o.name == "lars")
    return std::make_unique<CudaLars>(chunks, elements, LarsOptions{momentum, o.trust, o.lars_threshold});
  if (o.name == "adam" || o.name == "adamw") {
    return std::make_unique<CudaAdam>(chunks, elements, AdamOptions{o.beta1, o.beta2, o.epsilon, o.name == "adamw"});
  }
  if (o.name == "rmsprop_warmup") {
    return std::make_unique<CudaRmspropWarmup>(chunks, elements,
                                               RmspropWarmupOptions{o.momentum, o.rms_decay, o.epsilon, o.rms_rate,
                                                                    o.rms_center, o.rms_period, o.rms_printed_slope});
  }
  throw std::invalid_argument("unknown optimizer '" + o.name + "'");
}

}  // namespace

std::unique_ptr<Optimizer> make_cuda_optimizer(const OptimizerOptions& o, const std::vector<Parameter>& parameters,
                                               std::size_t elements) {
  return cuda_optimizer_for(o, chunks_of(parameters, elements, o.weight_decay), elements);
}

std::unique_ptr<Optimizer> make_cuda_shard_optimizer(const OptimizerOptions& o,
                                                     const std::vector<Parameter>& parameters, std::size_t elements,
                                                     Slice shard) {
  if (o.name == "lars") throw std::invalid_argument("lars needs whole parameters");
  auto optimizer =
      cuda_optimizer_for(o, chunks_within(chunks_of(parameters, elements, o.weight_decay), shard), shard.count);
  optimizer->set_first(shard.first);
  return optimizer;
}

}  // namespace paceline::train::cuda
