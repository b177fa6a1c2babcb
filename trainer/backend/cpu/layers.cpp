// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cpu/layers.h"

#include <cstring>
#include <stdexcept>

#include "trainer/backend/cpu/kernels.h"

namespace paceline::train {

CpuParameter& CpuBuild::add_parameter(const ParameterShape& shape, const onednn::Desc& layout, bool batch_norm) {
  CpuParameter& added = parameters.emplace_back();
  added.parameter.name = shape.name;
  added.parameter.shape = shape.shape;
  added.parameter.size = onednn::bytes(layout) / sizeof(float);
  added.parameter.batch_norm = batch_norm;
  added.layout = layout;
  added.weights = dnnl::memory(layout, engine, DNNL_MEMORY_NONE);
  added.gradient = dnnl::memory(layout, engine, DNNL_MEMORY_NONE);
  return added;
}

void SummedGradient::plan(Activation& output, CpuBuild& build, bool overwrite) {
  sum_ = output.gradients.front();
  others_.assign(output.gradients.begin() + 1, output.gradients.end());
  if ((overwrite || !others_.empty()) && build.plan.owners(sum_) > 1) {  // another layer will still read it
    shared_ = sum_;
    sum_ = build.plan.acquire(shared_.get_desc());
    build.plan.release(shared_);
  }
  for (const dnnl::memory& other : others_) build.plan.release(other);
}

void SummedGradient::run() const {
  if (shared_) std::memcpy(sum_.get_data_handle(), shared_.get_data_handle(), onednn::bytes(sum_.get_desc()));
  for (const dnnl::memory& other : others_) {
    with_numbers([&](const auto* from, auto* to) { kernels::add_to(from, to, elements(sum_)); }, other, sum_);
  }
}

void WeightsFor::plan(const dnnl::memory& weights, const onednn::Desc& wanted, CpuBuild& build) {
  memory_ = weights;
  if (onednn::same_layout(wanted, weights.get_desc())) return;
  memory_ = build.plan.acquire(wanted);
  reorder_ = {dnnl::reorder(weights, memory_), {{DNNL_ARG_FROM, weights}, {DNNL_ARG_TO, memory_}}};
  build.plan.release(memory_);
}

std::unique_ptr<CpuLayer> make_layer(const Layer& layer, CpuBuild& build) {
  switch (layer.kind) {
    case LayerKind::convolution:
      return make_convolution(layer, build);
    case LayerKind::batch_norm:
      return make_batch_norm(layer, build);
    case LayerKind::relu:
      return make_relu(layer, build);
    case LayerKind::add_relu:
      return make_add_relu(layer, build);
    case LayerKind::max_pool:
    case LayerKind::average_pool:
      return make_pooling(layer, build);
    case LayerKind::linear:
      return make_linear(layer, build);
    case LayerKind::dropout:
      return make_dropout(layer, build);
    case LayerKind::input:
      break;
  }
  throw std::logic_error("the input is not a layer to compute");
}

}  // namespace paceline::train
