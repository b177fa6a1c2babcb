// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cuda/cuda_model.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "trainer/backend/cuda/cuda_network.h"
#include "trainer/backend/cuda/flat.h"
#include "trainer/backend/cuda/input.h"
#include "trainer/backend/cuda/loss_scale.h"
#include "trainer/core/error.h"
#include "trainer/nn/init.h"

namespace paceline::train::cuda {
namespace {

// GPU memory. All operations run in the model's stream.
class DeviceMemory final : public Memory {
 public:
  explicit DeviceMemory(cudaStream_t stream) : stream_(stream) {}

  Values allocate(std::size_t count) override {
    auto buffer = std::make_shared<Buffer>(zeroed_buffer(std::max<std::size_t>(count, 1) * sizeof(float)));
    return {buffer, buffer->data<float>()};
  }

  void copy(std::span<const float> from, std::span<float> to) override {
    PACELINE_CHECK_CUDA(cudaMemcpyAsync(to.data(), from.data(), to.size_bytes(), cudaMemcpyDefault, stream_));
    finish();
  }

  void add(std::span<const float> from, std::span<float> to) override {
    flat::add(stream_, from.data(), to.data(), to.size());
    finish();
  }

  void divide(std::span<float> values, float divisor) override {
    flat::divide(stream_, values.data(), values.size(), divisor);
    finish();
  }

  double sum_of_squares(std::span<const float> values) override {
    if (!sums_) sums_.emplace(device_buffer(flat::squares_blocks * sizeof(double)));
    flat::sum_squares(stream_, values.data(), values.size(), sums_->data<double>());
    std::array<double, flat::squares_blocks> sums;
    PACELINE_CHECK_CUDA(cudaMemcpyAsync(sums.data(), sums_->data(), sizeof sums, cudaMemcpyDeviceToHost, stream_));
    PACELINE_CHECK_CUDA(cudaStreamSynchronize(stream_));
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  }

  bool queues = false;  // the caller follows the stream

 private:
  void finish() {
    if (!queues) PACELINE_CHECK_CUDA(cudaStreamSynchronize(stream_));
  }

  const cudaStream_t stream_;
  std::optional<Buffer> sums_;  // of sum_of_squares()
};

// Work that runs as usual the first time, which loads the kernels (a capture must not do that), is captured the second
// time, and is launched as a graph from then on.
class CapturedWork {
 public:
  CapturedWork() = default;
  CapturedWork(const CapturedWork&) = delete;
  CapturedWork& operator=(const CapturedWork&) = delete;
  ~CapturedWork() {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }

  template <class Work>
  void run(cudaStream_t stream, Work work) {
    if (graph_ == nullptr) {
      if (++asked_ < 2) return work();
      capture(stream, work);
    }
    PACELINE_CHECK_CUDA(cudaGraphLaunch(graph_, stream));
  }

 private:
  template <class Work>
  void capture(cudaStream_t stream, Work work) {
    cudaGraph_t graph = nullptr;
    PACELINE_CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    try {
      work();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);  // ends the capture after an error
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw;
    }
    PACELINE_CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    const cudaError_t status = cudaGraphInstantiate(&graph_, graph, 0);
    cudaGraphDestroy(graph);
    check(status, "cudaGraphInstantiate");
  }

  int asked_ = 0;
  cudaGraphExec_t graph_ = nullptr;
};

class CudaModel final : public Model {
 public:
  CudaModel(const Network& network, const ModelOptions& options, const Device& device)
      : device_(device),
        precision_(precision_of(options.dtype)),
        graphs_(options.cuda_graphs),
        plans_(options.plan_cache),
        network_(network, settings_of(options, precision_), device, stream_, plans_),
        batch_(options.batch_size),
        classes_(network.layers().back().out.size()),
        label_smoothing_(options.label_smoothing),
        train_flops_(network.train_flops()),
        input_(stream_, network.layers()[0].out, batch_),
        labels_(device_buffer(static_cast<std::size_t>(batch_) * sizeof(std::int32_t))),
        losses_(device_buffer(static_cast<std::size_t>(batch_) * 3 * sizeof(double))),
        score_(device_buffer(sizeof(BatchScore) + sizeof(unsigned))),
        host_(pinned_buffer(sizeof(Host) + static_cast<std::size_t>(batch_) * sizeof(std::int32_t))) {
    if (network.layers().back().kind != LayerKind::linear) {
      throw std::invalid_argument("on a GPU the last layer must be a linear one");
    }
    plans_.end_turn();
    gradients_ = {network_.flat().gradients, network_.elements()};
    for (const CudaParameter& parameter : network_.parameters()) parameters_.push_back(parameter.parameter);
    std::size_t next = 0;
    for (const Layer& layer : network_.layers()) {
      for (const ParameterShape& shape : layer.parameters()) {
        from_plain(parameters_[next++], initial_values(layer, shape, options.seed), weights());
      }
    }
  }

  Score forward(std::span<const float> images, std::span<const std::int32_t> labels, Mode mode) override {
    if (images.size() != labels.size() * static_cast<std::size_t>(image().size())) {
      throw std::invalid_argument("as many labels as images, please");
    }
    check_labels(labels, mode);
    input_.fill(images, network_.storage(), network_.tensor(0).value);
    return run_forward(labels, mode);
  }

  bool takes_stored_images() const override { return image().channels <= 3 && image().height == image().width; }

  Score forward_stored(const StoredImages& images, std::span<const std::int32_t> labels, Mode mode) override {
    if (images.planes.size() != labels.size() * static_cast<std::size_t>(image().size()) ||
        images.cuts.size() != labels.size()) {
      throw std::invalid_argument("as many labels as images and cuts, please");
    }
    check_labels(labels, mode);
    input_.fill(images, network_.storage(), network_.tensor(0).value);
    return run_forward(labels, mode);
  }

  std::pmr::memory_resource* image_memory() override { return input_.pinned(); }
  void prefetch(std::span<const float> images) override { input_.prefetch(images); }
  void prefetch(const StoredImages& images) override { input_.prefetch(images); }

  void seed_dropout(std::uint64_t seed) override { dropout_ = seed; }

  void backward(float scale) override {
    const bool scaled = precision_ == Precision::f16;
    again_ = false;
    do {
      Step& step = host().step;
      step.loss_gradient = scale * (scaled ? loss_scale_.factor() : 1);
      step.unscale = scaled ? loss_scale_.inverse() : 1;
      step.overflow = 0;
      send_step();
      run_backward();
      if (scaled) {
        PACELINE_CHECK_CUDA(cudaMemcpyAsync(&step, network_.step(), sizeof step, cudaMemcpyDeviceToHost, stream_));
      }
      stream_.synchronize();
      again_ = scaled && loss_scale_.repeat(step.overflow != 0);
    } while (again_ && !gradients_ready);  // which has handed them on
  }

  bool wants_backward_again() const override { return again_; }
  void* stream() override { return stream_.get(); }

  std::span<float> weights() override { return {network_.flat().weights, network_.elements()}; }
  std::span<float> gradients() override { return gradients_; }
  std::span<float> statistics() override { return {network_.flat().statistics, network_.statistics()}; }
  Memory& memory() override { return memory_; }

  void set_gradients(std::span<float> buffer) override {
    if (buffer.size() != gradients_.size()) throw std::invalid_argument("a gradient buffer of another size");
    gradients_ = buffer;
    network_.flat().gradients = buffer.data();
  }

  const std::vector<Parameter>& parameters() const override { return parameters_; }

  std::vector<float> to_plain(const Parameter& parameter, std::span<const float> flat) const override {
    const CudaParameter& own = find(parameter);
    std::vector<float> stored(own.layout.stored());
    copy(flat.subspan(own.parameter.offset, stored.size()), stored);
    return to_published(own.layout, stored);
  }

  void from_plain(const Parameter& parameter, std::span<const float> plain, std::span<float> flat) const override {
    const CudaParameter& own = find(parameter);
    if (plain.size() != own.layout.published()) {
      throw std::invalid_argument(parameter.name + " has " + std::to_string(own.layout.published()) +
                                  " elements, not " + std::to_string(plain.size()));
    }
    std::vector<float> stored(own.layout.stored());
    from_published(own.layout, plain, stored);
    copy(stored, flat.subspan(own.parameter.offset, stored.size()));
  }

  std::string first_nonfinite_layer() const override {
    auto* const flag = reinterpret_cast<unsigned*>(score_.data<BatchScore>() + 1);
    for (std::size_t i = 1; i < network_.layers().size(); ++i) {
      const Tensor& tensor = const_cast<CudaNetwork&>(network_).tensor(i);
      if (tensor.value == nullptr) continue;
      unsigned found = 0;
      PACELINE_CHECK_CUDA(cudaMemsetAsync(flag, 0, sizeof found, stream_));
      kernels::find_nonfinite(stream_, tensor.storage, tensor.value, tensor.count(), flag);
      PACELINE_CHECK_CUDA(cudaMemcpyAsync(&found, flag, sizeof found, cudaMemcpyDeviceToHost, stream_));
      stream_.synchronize();
      if (found != 0) return network_.layers()[i].name;
    }
    return {};
  }

  double train_flops_per_image() const override { return train_flops_; }

 private:
  // In pinned memory, in front of the labels.
  struct Host {
    Step step;
    BatchScore score;
  };
  Host& host() { return *host_.data<Host>(); }
  const Shape& image() const { return network_.layers()[0].out; }

  static NetworkSettings settings_of(const ModelOptions& options, Precision precision) {
    if (options.batch_size < 1) throw std::invalid_argument("the batch size must be at least 1");
    NetworkSettings settings;
    settings.precision = precision;
    settings.batch = options.batch_size;
    settings.winograd = options.winograd;
    settings.freeze_batch_norm = options.freeze_batch_norm;
    settings.fuse = options.fuse;
    settings.batch_norm = options.batch_norm;
    return settings;
  }

  void check_labels(std::span<const std::int32_t> labels, Mode mode) const {
    const auto batch = static_cast<std::size_t>(batch_);
    if (labels.size() > batch) throw std::invalid_argument("more samples than the model's batch size");
    if (mode == Mode::train && labels.size() != batch) {
      throw std::invalid_argument("training needs full batches: batch statistics of a part would differ");
    }
    for (std::size_t sample = 0; sample < labels.size(); ++sample) {
      if (labels[sample] >= 0 && labels[sample] < classes_) continue;
      throw std::invalid_argument("label " + std::to_string(labels[sample]) + " of sample " + std::to_string(sample) +
                                  " is outside the " + std::to_string(classes_) + " classes");
    }
  }

  void send_step() {
    PACELINE_CHECK_CUDA(cudaMemcpyAsync(network_.step(), &host().step, sizeof(Step), cudaMemcpyHostToDevice, stream_));
  }

  Score run_forward(std::span<const std::int32_t> labels, Mode mode) {
    auto* const pinned = reinterpret_cast<std::int32_t*>(&host() + 1);
    std::ranges::copy(labels, pinned);
    PACELINE_CHECK_CUDA(cudaMemcpyAsync(labels_.data(), pinned, labels.size_bytes(), cudaMemcpyHostToDevice, stream_));
    if (mode == Mode::train) {
      dropout_ = dropout_ * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;  // new masks each time
      host().step = {};
      host().step.dropout = dropout_;
      send_step();
    }
    if (graphs_ && mode == Mode::train) {
      forward_.run(stream_, [&] { network_.forward(mode, nullptr); });
    } else {
      network_.forward(mode, observer);
    }
    auto* const score = score_.data<BatchScore>();
    kernels::cross_entropy(stream_, logits(), labels_.data<std::int32_t>(), static_cast<std::int64_t>(labels.size()),
                           classes_, mode == Mode::train ? label_smoothing_ : 0, losses_.data<double>(), score);
    PACELINE_CHECK_CUDA(cudaMemcpyAsync(&host().score, score, sizeof *score, cudaMemcpyDeviceToHost, stream_));
    stream_.synchronize();
    return {host().score.loss_sum, host().score.correct, static_cast<std::int64_t>(labels.size()),
            host().score.in_top_5};
  }

  const float* logits() { return static_cast<const float*>(network_.tensor(network_.layers().size() - 1).value); }

  // gradients_ready records an event behind a layer's work, so the host does not wait.
  void run_backward() {
    const auto begin = [&] {
      kernels::cross_entropy_backward(stream_, network_.storage(), logits(), labels_.data<std::int32_t>(), batch_,
                                      classes_, label_smoothing_, network_.step(), network_.output_gradient());
    };
    if (graphs_ && !gradients_ready) {
      backward_[gradients_.data()].run(stream_, [&] {
        begin();
        network_.backward(nullptr, {});
      });
      return;
    }
    begin();
    network_.backward(observer, [&](std::size_t layer) {
      const std::size_t count = network_.layers()[layer].parameters().size();
      if (count == 0 || !gradients_ready) return;
      memory_.queues = true;
      gradients_ready(network_.first_parameter(layer), count);
      memory_.queues = false;
    });
  }

  // Either span may be in GPU memory.
  void copy(std::span<const float> from, std::span<float> to) const {
    PACELINE_CHECK_CUDA(cudaMemcpyAsync(to.data(), from.data(), to.size_bytes(), cudaMemcpyDefault, stream_));
    stream_.synchronize();
  }

  const CudaParameter& find(const Parameter& parameter) const {
    const auto found = std::ranges::find_if(
        network_.parameters(), [&](const CudaParameter& own) { return own.parameter.offset == parameter.offset; });
    if (found == network_.parameters().end()) throw std::logic_error("parameter of another model: " + parameter.name);
    return *found;
  }

  const Device device_;
  const Precision precision_;
  const bool graphs_;
  Stream stream_{"compute"};
  PlanCache plans_;
  CudaNetwork network_;
  const std::int64_t batch_, classes_;
  const double label_smoothing_;
  const double train_flops_;
  DeviceMemory memory_{stream_};
  Input input_;
  Buffer labels_, losses_, score_, host_;
  std::span<float> gradients_;
  std::vector<Parameter> parameters_;
  CapturedWork forward_;
  std::map<const float*, CapturedWork> backward_;  // by the gradients' buffer
  LossScale loss_scale_;
  bool again_ = false;
  std::uint64_t dropout_ = 0;
};

}  // namespace

std::unique_ptr<Model> make_cuda_model(const Network& network, const ModelOptions& options, const Device& device) {
  if (options.cuda_graphs && options.batch_norm.sum_over_ranks) {
    throw Error("‹cuda-graphs›",
                "a synchronised batch norm asks the other ranks in the middle of a step, which no graph can hold",
                "leave out one of the two", Status::usage);
  }
  if (options.dtype == "f16" && options.batch_norm.sum_over_ranks && !options.freeze_batch_norm) {
    throw Error(
        "‹dtype› f16",
        "each rank chooses its own loss scale, and a synchronised batch norm would add up gradients of different "
        "scales",
        "take bf16, or leave out ‹sync-batch-norm›", Status::usage);
  }
  return std::make_unique<CudaModel>(network, options, device);
}

}  // namespace paceline::train::cuda
