// SPDX-License-Identifier: Apache-2.0
// One layer of the CPU backend alone, with the tensors that a network would give it.
#pragma once

#include <utility>
#include <vector>

#include "tests/unit/trainer/backend/operations.h"
#include "trainer/backend/cpu/layers.h"

namespace paceline::train {

class Alone {
 public:
  // image: the layout of a convolution's input; by default the convolution chooses it.
  explicit Alone(const Operation& operation, const BatchNormOptions& batch_norm = {},
                 dnnl::memory::format_tag image = dnnl::memory::format_tag::any)
      : engine_(dnnl::engine::kind::cpu, 0),
        build_{engine_,
               dnnl::stream(engine_),
               MemoryPlan(engine_),
               operation.batch,
               operation.frozen,
               operation.winograd,
               {},
               {},
               {},
               batch_norm,
               operation.bf16 ? onednn::Type::bf16 : onednn::Type::f32} {
    Network network(operation.in);
    operation.append(network);
    layer_ = network.layers().back();
    build_.activations.reserve(2);
    build_.parameters.reserve(2);
    build_.activations.emplace_back();
    if (layer_.kind != LayerKind::convolution) {
      build_.activations[0].value = build_.plan.acquire(blocked(layer_.in));
    } else if (image != dnnl::memory::format_tag::any) {
      build_.activations[0].value = build_.plan.acquire({build_.dims(layer_.in), build_.type, image});
    }
    fast_ = make_layer(layer_, build_);
    build_.activations[1].gradients.push_back(build_.plan.acquire(build_.activations[1].value.get_desc()));
    output_gradient_ = build_.activations[1].gradients[0];
    fast_->plan_backward(build_, build_.activations[1]);
    build_.plan.allocate();
    for (CpuParameter& parameter : build_.parameters) {
      own_.emplace_back(parameter.layout, engine_);
      parameter.weights.set_data_handle(own_.back().get_data_handle());
      own_.emplace_back(parameter.layout, engine_);
      parameter.gradient.set_data_handle(own_.back().get_data_handle());
    }
    for (const dnnl::memory& statistic : build_.statistics) {
      own_.emplace_back(statistic.get_desc(), engine_);
      statistic.set_data_handle(own_.back().get_data_handle());
    }
  }

  const Layer& layer() const { return layer_; }
  CpuBuild& build() { return build_; }
  CpuLayer& fast() { return *fast_; }
  const dnnl::memory& output_gradient() const { return output_gradient_; }

  void write(const Values& values, const dnnl::memory& to) {
    std::vector<float> plain(values.begin(), values.end());
    dnnl::memory from(onednn::plain_layout(onednn::dims(to.get_desc())), engine_, plain.data());
    dnnl::memory target = to;
    dnnl::reorder(from, target).execute(build_.stream, from, target);
  }

  std::vector<float> read(const dnnl::memory& from) {
    const onednn::Dims dims = onednn::dims(from.get_desc());
    std::size_t count = 1;
    for (const auto extent : dims) count *= static_cast<std::size_t>(extent);
    std::vector<float> plain(count);
    dnnl::memory source = from, to(onednn::plain_layout(dims), engine_, plain.data());
    dnnl::reorder(source, to).execute(build_.stream, source, to);
    return plain;
  }

 private:
  // In the layout of a convolution's result.
  onednn::Desc blocked(const Shape& shape) const {
    return {build_.dims(shape), build_.type, dnnl::memory::format_tag::nChw16c};
  }

  dnnl::engine engine_;
  CpuBuild build_;
  Layer layer_;
  std::unique_ptr<CpuLayer> fast_;
  dnnl::memory output_gradient_;
  std::vector<dnnl::memory> own_;
};

}  // namespace paceline::train
