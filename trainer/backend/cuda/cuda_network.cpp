// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cuda/cuda_network.h"

#include <algorithm>
#include <limits>

#include "trainer/core/error.h"

namespace paceline::train::cuda {
namespace {

constexpr std::int64_t parameter_alignment = 128;  // elements: 256 bytes of the narrowest storage, as products like it
constexpr std::int64_t statistics_alignment =
    16;  // as in the CPU backend, because checkpoints hold all statistics in one piece

// cuDNN has fused plans only in fp16, and only for statistics of this rank's whole batch.
bool can_fuse(const NetworkSettings& settings) {
  const BatchNormOptions& norm = settings.batch_norm;
  return settings.fuse && settings.precision == Precision::f16 && !settings.freeze_batch_norm && !norm.sum_over_ranks &&
         (norm.ghost_batch == 0 || norm.ghost_batch >= settings.batch);
}

}  // namespace

CudaNetwork::CudaNetwork(const Network& network, const NetworkSettings& settings, const Device& device,
                         cudaStream_t stream, PlanCache& plans)
    : network_(network),
      cudnn_(device, stream, plans),
      build_{cudnn_,
             blas_,
             stream,
             settings.precision,
             settings.batch,
             settings.winograd,
             settings.freeze_batch_norm,
             can_fuse(settings),
             settings.batch_norm,
             flat_,
             nullptr,
             {},
             {},
             {},
             {},
             {},
             {}} {
  const std::vector<Layer>& layers = network_.layers();
  step_ = device_buffer(sizeof(Step));
  build_.step = step_.data<Step>();
  const Step start;
  PACELINE_CHECK_CUDA(cudaMemcpyAsync(step_.data(), &start, sizeof start, cudaMemcpyHostToDevice, stream));
  place_parameters();

  const Storage storage = build_.storage();
  std::size_t largest_sums = 0, largest_filter = 0;
  for (const Layer& layer : layers) {
    Tensor& tensor = build_.tensors.emplace_back();
    tensor.shape = layer.out;
    tensor.samples = settings.batch;
    tensor.storage = storage;
    if (tensor.count() / 4 > std::numeric_limits<unsigned>::max()) {
      throw Error("layer " + layer.name, "its output is too large for a GPU", "lower ‹batch-size›", Status::usage);
    }
    largest_sums = std::max(largest_sums, partial_sum_bytes(layer.out.channels));
    if (layer.kind == LayerKind::convolution) {
      largest_filter = std::max(largest_filter, filter_layout(layer, 0).stored());
    }
  }
  Tensor& image = build_.tensors[0];
  image.shape.channels = to_multiple(image.shape.channels, channel_group);
  image.needs_gradient = settings.gradient_of_image;
  image.value = build_.allocate(image.count() * bytes_of(storage));
  if (layers.back().kind == LayerKind::linear) build_.tensors.back().storage = Storage::f32;
  partials_ = device_buffer(largest_sums);
  build_.partials = partials_.data<double>();
  if (storage != Storage::f32) {
    filter_gradient_ = device_buffer(std::max<std::size_t>(256, largest_filter * bytes_of(storage)));
    build_.filter_gradient = filter_gradient_.data();
  }

  const std::vector<Fusion> fusions = plan_fusions(layers);
  for (std::size_t i = 1; i < layers.size(); ++i) layers_.push_back(make_layer(layers[i], i, fusions[i], build_));
  output_gradient_ = build_.gradients.acquire((build_.tensors.back().count() + 3) / 4 * 4 * bytes_of(storage));
  build_.tensors.back().gradients.push_back(output_gradient_);
  for (std::size_t i = layers_.size(); i-- > 0;) layers_[i]->plan_backward(build_.tensors[i + 1]);
  PACELINE_CHECK_CUDA(cudaStreamSynchronize(stream));
}

void CudaNetwork::place_parameters() {
  std::int64_t offset = 0, statistic = 0;
  for (const Layer& layer : network_.layers()) {
    first_parameter_.push_back(parameters_.size());
    build_.parameters.emplace_back();
    build_.statistics.push_back(static_cast<std::size_t>(statistic));
    const std::vector<ParameterShape> shapes = layer.parameters();
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const FilterLayout layout = filter_layout(layer, i);
      Parameter parameter;
      parameter.name = shapes[i].name;
      parameter.offset = static_cast<std::size_t>(offset);
      parameter.size = layout.stored();
      parameter.shape = shapes[i].shape;
      parameter.batch_norm = layer.kind == LayerKind::batch_norm;
      build_.parameters.back().push_back(parameter.offset);
      parameters_.push_back({std::move(parameter), layout});
      offset += to_multiple(static_cast<std::int64_t>(layout.stored()), parameter_alignment);
    }
    if (layer.kind == LayerKind::batch_norm) statistic += 2 * to_multiple(layer.out.channels, statistics_alignment);
  }
  elements_ = static_cast<std::size_t>(std::max(offset, statistics_alignment));
  statistics_ = static_cast<std::size_t>(std::max(statistic, statistics_alignment));
  weights_ = zeroed_buffer(elements_ * sizeof(float));
  gradients_ = zeroed_buffer(elements_ * sizeof(float));
  running_ = device_buffer(statistics_ * sizeof(float));
  flat_.weights = weights_.data<float>();
  flat_.gradients = gradients_.data<float>();
  flat_.statistics = running_.data<float>();
  if (build_.storage() != Storage::f32) {
    narrow_ = device_buffer(elements_ * bytes_of(build_.storage()));
    flat_.narrow = narrow_.data();
    PACELINE_CHECK_CUDA(cudaMemsetAsync(flat_.narrow, 0, narrow_.bytes(), build_.stream));
  }
  std::vector<float> start(statistics_);  // means of 0, variances of 1
  for (std::size_t i = 0; i < network_.layers().size(); ++i) {
    const Layer& layer = network_.layers()[i];
    if (layer.kind != LayerKind::batch_norm) continue;
    const auto channels = static_cast<std::size_t>(to_multiple(layer.out.channels, statistics_alignment));
    const auto variance = start.begin() + static_cast<std::ptrdiff_t>(build_.statistics[i] + channels);
    std::fill_n(variance, static_cast<std::size_t>(layer.out.channels), 1.0f);
  }
  PACELINE_CHECK_CUDA(
      cudaMemcpyAsync(flat_.statistics, start.data(), running_.bytes(), cudaMemcpyHostToDevice, build_.stream));
  PACELINE_CHECK_CUDA(cudaStreamSynchronize(build_.stream));
}

void CudaNetwork::forward(Mode mode, LayerObserver* observer) {
  if (flat_.narrow != nullptr) kernels::narrow(build_.stream, build_.storage(), flat_.weights, flat_.narrow, elements_);
  for (const auto& layer : layers_) {
    if (observer != nullptr) observer->begin(layer->layer().name, mode, false);
    layer->forward(mode);
    if (observer != nullptr) observer->end();
  }
}

void CudaNetwork::backward(LayerObserver* observer, const After& after) {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    if (observer != nullptr) observer->begin(layers_[i]->layer().name, Mode::train, true);
    layers_[i]->backward();
    if (observer != nullptr) observer->end();
    if (after) after(i + 1);
  }
}

}  // namespace paceline::train::cuda
