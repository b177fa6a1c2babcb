// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cuda/layers.h"

#include <algorithm>
#include <stdexcept>

namespace paceline::train::cuda {

void* GradientPool::acquire(std::size_t bytes) {
  bytes = std::max<std::size_t>(256, (bytes + 255) / 256 * 256);
  const auto found = free_.lower_bound(bytes);
  void* memory = nullptr;
  if (found != free_.end() && found->first <= 4 * bytes) {
    memory = found->second;
    bytes = found->first;
    free_.erase(found);
  } else {
    memory = buffers_.emplace_back(device_buffer(bytes)).data();
  }
  owners_[memory] = {bytes, 1};
  return memory;
}

void GradientPool::release(void* memory) {
  Owners& owners = owners_.at(memory);
  if (--owners.count == 0) free_.emplace(owners.bytes, memory);
}

void* Build::allocate(std::size_t bytes) {
  void* result = memory.emplace_back(device_buffer(std::max<std::size_t>(bytes, 256))).data();
  PACELINE_CHECK_CUDA(cudaMemsetAsync(result, 0, memory.back().bytes(), stream));
  return result;
}

const void* Build::operand(std::size_t offset) const {
  if (flat.narrow == nullptr) return flat.weights + offset;
  return static_cast<const std::byte*>(flat.narrow) + offset * bytes_of(storage());
}

void SummedGradient::plan(Tensor& output, Build& build, std::size_t most) {
  parts_ = output.gradients;
  if (parts_.empty()) throw std::logic_error("a layer whose output nobody reads");
  count_ = output.count();
  storage_ = build.storage();
  while (parts_.size() > most) {
    void *a = parts_[parts_.size() - 2], *b = parts_.back();
    void* to = build.gradients.owners(a) == 1 ? a : build.gradients.acquire(count_ * bytes_of(storage_));
    sums_.push_back({a, b, to});
    if (to != a) build.gradients.release(a);
    build.gradients.release(b);
    parts_.pop_back();
    parts_.back() = to;
  }
}

void SummedGradient::run(Build& build) const {
  for (const Sum& sum : sums_) kernels::add(build.stream, storage_, sum.a, sum.b, sum.to, count_);
}

void SummedGradient::release(Build& build) const {
  for (void* part : parts_) build.gradients.release(part);
}

void add_output(const Layer& layer, std::size_t number, Build& build) {
  Tensor& tensor = build.tensors[number];
  tensor.value = build.allocate((tensor.count() + 3) / 4 * 4 * bytes_of(tensor.storage));
  if (layer.kind != LayerKind::linear && layer.out.channels % channel_group != 0) {
    throw std::invalid_argument(layer.name + " has " + std::to_string(layer.out.channels) +
                                " channels; on a GPU it must be a multiple of 4");
  }
}

namespace {

// A fused ReLU's value is the convolution's, so only the gradient is computed here.
class CudaRelu final : public CudaLayer {
 public:
  CudaRelu(const Layer& layer, std::size_t number, bool fused, Build& build) : CudaLayer(layer, build), fused_(fused) {
    x_ = build.tensor(layer.input).value;
    if (fused)
      build.tensors[number].value = build.tensor(layer.input).value;
    else
      add_output(layer, number, build);
    y_ = build.tensors[number].value;
    count_ = build.tensors[number].count();
  }

  void plan_backward(Tensor& output) override {
    dy_.plan(output, b_, 2);
    dx_ = b_.gradients.acquire(count_ * bytes_of(b_.storage()));
    b_.tensor(layer_.input).gradients.push_back(dx_);
    dy_.release(b_);
  }

  void forward(Mode) override {
    if (!fused_) kernels::relu(b_.stream, b_.storage(), x_, y_, count_);
  }

  void backward() override {
    dy_.run(b_);
    kernels::relu_backward(b_.stream, b_.storage(), y_, dy_.first(), dy_.second(), dx_, count_);
  }

 private:
  const bool fused_;
  const void* x_ = nullptr;
  void *y_ = nullptr, *dx_ = nullptr;
  std::size_t count_ = 0;
  SummedGradient dy_;
};

class CudaAddRelu final : public CudaLayer {
 public:
  CudaAddRelu(const Layer& layer, std::size_t number, Build& build) : CudaLayer(layer, build) {
    add_output(layer, number, build);
    a_ = build.tensor(layer.input).value;
    c_ = build.tensor(layer.residual).value;
    y_ = build.tensors[number].value;
    count_ = build.tensors[number].count();
  }

  void plan_backward(Tensor& output) override {
    dy_.plan(output, b_, 2);
    dx_ = b_.gradients.acquire(count_ * bytes_of(b_.storage()));
    b_.gradients.share(dx_);  // both summands get the same gradient
    b_.tensor(layer_.input).gradients.push_back(dx_);
    b_.tensor(layer_.residual).gradients.push_back(dx_);
    dy_.release(b_);
  }

  void forward(Mode) override { kernels::add_relu(b_.stream, b_.storage(), a_, c_, y_, count_); }

  void backward() override {
    dy_.run(b_);
    kernels::relu_backward(b_.stream, b_.storage(), y_, dy_.first(), dy_.second(), dx_, count_);
  }

 private:
  const void *a_ = nullptr, *c_ = nullptr;
  void *y_ = nullptr, *dx_ = nullptr;
  std::size_t count_ = 0;
  SummedGradient dy_;
};

class CudaPooling final : public CudaLayer {
 public:
  CudaPooling(const Layer& layer, std::size_t number, Build& build) : CudaLayer(layer, build) {
    add_output(layer, number, build);
    x_ = build.tensor(layer.input).value;
    y_ = build.tensors[number].value;
    if (layer.kind == LayerKind::max_pool && layer.kernel > 15) {  // positions are bytes
      throw std::invalid_argument(layer.name + " has windows of more than 15 × 15 pixels");
    }
    if (layer.kind == LayerKind::max_pool)
      where_ = static_cast<std::uint8_t*>(build.allocate(build.tensors[number].count()));
    pool_ = {build.batch,     layer.out.channels, layer.in.height, layer.in.width, layer.out.height,
             layer.out.width, layer.kernel,       layer.stride,    layer.padding};
  }

  void plan_backward(Tensor& output) override {
    dy_.plan(output, b_, 1);
    Tensor& input = b_.tensor(layer_.input);
    dx_ = b_.gradients.acquire(input.count() * bytes_of(b_.storage()));
    input.gradients.push_back(dx_);
    dy_.release(b_);
  }

  void forward(Mode) override {
    if (where_ != nullptr)
      kernels::max_pool(b_.stream, b_.storage(), x_, y_, where_, pool_);
    else
      kernels::average_pool(b_.stream, b_.storage(), x_, y_, pool_);
  }

  void backward() override {
    dy_.run(b_);
    if (where_ != nullptr)
      kernels::max_pool_backward(b_.stream, b_.storage(), dy_.first(), where_, dx_, pool_);
    else
      kernels::average_pool_backward(b_.stream, b_.storage(), dy_.first(), dx_, pool_);
  }

 private:
  const void* x_ = nullptr;
  void *y_ = nullptr, *dx_ = nullptr;
  std::uint8_t* where_ = nullptr;
  kernels::Pool pool_{};
  SummedGradient dy_;
};

// The gradient of its weights is written in fp32 for any storage of the operands.
class CudaLinear final : public CudaLayer {
 public:
  CudaLinear(const Layer& layer, std::size_t number, Build& build) : CudaLayer(layer, build) {
    add_output(layer, number, build);
    x_ = build.tensor(layer.input).value;
    y_ = build.tensors[number].value;
    offsets_ = build.parameters[number];
    result_ = build.tensors[number].storage;
    const std::int64_t in = layer.in.size(), out = layer.out.channels;
    forward_.emplace(build.blas, MatmulShape{build.batch, out, in, false, true, layer.bias}, build.precision, result_);
    weight_gradient_.emplace(build.blas, MatmulShape{out, in, build.batch, true, false}, build.precision, Storage::f32);
    data_gradient_.emplace(build.blas, MatmulShape{build.batch, in, out}, build.precision, build.storage());
  }

  void plan_backward(Tensor& output) override {
    dy_.plan(output, b_, 1);
    Tensor& input = b_.tensor(layer_.input);
    if (input.needs_gradient) {
      dx_ = b_.gradients.acquire(input.count() * bytes_of(b_.storage()));
      input.gradients.push_back(dx_);
    }
    dy_.release(b_);
  }

  void forward(Mode) override {
    const void* bias = nullptr;
    if (layer_.bias) bias = result_ == Storage::f32 ? b_.weight(offsets_[1]) : b_.operand(offsets_[1]);
    forward_->run(b_.stream, x_, b_.operand(offsets_[0]), y_, bias);
  }

  void backward() override {
    dy_.run(b_);
    float* const gradient = b_.gradient(offsets_[0]);
    weight_gradient_->run(b_.stream, dy_.first(), x_, gradient);
    if (b_.storage() != Storage::f32) {
      kernels::take_gradient(b_.stream, Storage::f32, gradient, gradient, filter_layout(layer_, 0).stored(), b_.step);
    }
    if (layer_.bias) {
      kernels::linear_bias_gradient(b_.stream, b_.storage(), dy_.first(), b_.gradient(offsets_[1]), b_.step, b_.batch,
                                    layer_.out.channels);
    }
    if (dx_ != nullptr) data_gradient_->run(b_.stream, dy_.first(), b_.operand(offsets_[0]), dx_);
  }

 private:
  const void* x_ = nullptr;
  void *y_ = nullptr, *dx_ = nullptr;
  Storage result_ = Storage::f32;
  std::vector<std::size_t> offsets_;
  SummedGradient dy_;
  std::optional<Matmul> forward_, weight_gradient_, data_gradient_;
};

// Backward computes the mask again, because a hash is cheaper than reading a byte.
class CudaDropout final : public CudaLayer {
 public:
  CudaDropout(const Layer& layer, std::size_t number, Build& build) : CudaLayer(layer, build), number_(number) {
    add_output(layer, number, build);
    x_ = build.tensor(layer.input).value;
    y_ = build.tensors[number].value;
    count_ = build.tensors[number].count();
  }

  void plan_backward(Tensor& output) override {
    dy_.plan(output, b_, 1);
    dx_ = b_.gradients.acquire(count_ * bytes_of(b_.storage()));
    b_.tensor(layer_.input).gradients.push_back(dx_);
    dy_.release(b_);
  }

  void forward(Mode mode) override {
    const float drop = mode == Mode::train ? layer_.drop : 0;
    kernels::dropout(b_.stream, b_.storage(), x_, y_, count_, drop, number_, b_.step);
  }

  void backward() override {
    dy_.run(b_);
    kernels::dropout(b_.stream, b_.storage(), dy_.first(), dx_, count_, layer_.drop, number_, b_.step);
  }

 private:
  const std::uint64_t number_;  // of the layer: two layers have different masks
  const void* x_ = nullptr;
  void *y_ = nullptr, *dx_ = nullptr;
  std::size_t count_ = 0;
  SummedGradient dy_;
};

// A layer whose work another layer does.
class CudaSilent final : public CudaLayer {
 public:
  using CudaLayer::CudaLayer;
  void plan_backward(Tensor&) override {}
  void forward(Mode) override {}
  void backward() override {}
};

}  // namespace

std::unique_ptr<CudaLayer> make_layer(const Layer& layer, std::size_t number, const Fusion& fusion, Build& build) {
  if (fusion.silent) return std::make_unique<CudaSilent>(layer, build);
  switch (layer.kind) {
    case LayerKind::convolution:
      return make_convolution(layer, number, fusion, build);
    case LayerKind::batch_norm:
      return make_batch_norm(layer, number, layer, number, fusion.applied, build);
    case LayerKind::relu:
      return std::make_unique<CudaRelu>(layer, number, fusion.relu, build);
    case LayerKind::add_relu:
      if (fusion.batch_norm) {
        return make_batch_norm(*fusion.batch_norm, fusion.batch_norm_number, layer, number, false, build);
      }
      return std::make_unique<CudaAddRelu>(layer, number, build);
    case LayerKind::max_pool:
    case LayerKind::average_pool:
      return std::make_unique<CudaPooling>(layer, number, build);
    case LayerKind::linear:
      return std::make_unique<CudaLinear>(layer, number, build);
    case LayerKind::dropout:
      return std::make_unique<CudaDropout>(layer, number, build);
    case LayerKind::input:
      break;
  }
  throw std::logic_error("no such layer on a GPU: " + layer.name);
}

}  // namespace paceline::train::cuda
