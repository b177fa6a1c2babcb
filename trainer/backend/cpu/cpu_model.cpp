// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cpu/cpu_model.h"

#include <algorithm>
#include <stdexcept>

#include "trainer/backend/cpu/kernels.h"
#include "trainer/backend/cpu/layers.h"
#include "trainer/core/error.h"
#include "trainer/nn/init.h"
#include "trainer/nn/models.h"

namespace paceline::train {

namespace {

constexpr std::size_t line = 64 / sizeof(float);  // every parameter starts a cache line

std::size_t round_up(std::size_t count) { return (count + line - 1) / line * line; }

class CpuModel final : public StageModel {
 public:
  CpuModel(const Network& network, const ModelOptions& options, const CpuModel* shares = nullptr)
      : network_(network), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_), build_{engine_,
                                                                                         stream_,
                                                                                         MemoryPlan(engine_),
                                                                                         options.batch_size,
                                                                                         options.freeze_batch_norm,
                                                                                         options.winograd,
                                                                                         {},
                                                                                         {},
                                                                                         {}} {
    if (options.batch_size < 1) throw std::invalid_argument("the batch size must be at least 1");
    const bool bf16 = options.dtype == "bf16";
    if (!bf16 && options.dtype != "f32")
      throw Error("‹dtype› " + options.dtype, "not available on CPUs", "use f32", Status::usage);
    if (const std::string reason = bf16 ? onednn::why_no_bf16() : ""; !reason.empty()) {
      throw Error("‹dtype› bf16", "not available on CPUs here: " + reason, "use f32, or ‹device› cuda", Status::usage);
    }
    build_.batch_norm = options.batch_norm;
    label_smoothing_ = options.label_smoothing;
    if (bf16) build_.type = onednn::Type::bf16;
    // Constructors of layers hold references into these.
    build_.activations.reserve(network_.layers().size());
    build_.parameters.reserve(2 * network_.layers().size());
    build_.layers_before = static_cast<std::uint64_t>(network_.layers_before());
    Activation& image = build_.activations.emplace_back();
    image.needs_gradient = network_.layers_before() > 0;
    if (network_.layers().at(1).kind != LayerKind::convolution) {  // a convolution chooses its layout itself
      image.value = build_.plan.acquire(onednn::plain_layout(build_.dims(network_.layers()[0].out), build_.type));
    }
    for (std::size_t i = 1; i < network_.layers().size(); ++i) {
      layers_.push_back(make_layer(network_.layers()[i], build_));
    }
    const Activation& logits = build_.activations.back();
    logits_ = logits.value;
    logits_gradient_ = build_.plan.acquire(logits_.get_desc());
    build_.activations.back().gradients.push_back(logits_gradient_);
    if (bf16 || !has_loss()) end_in_plain_f32();
    for (std::size_t i = layers_.size(); i-- > 0;) layers_[i]->plan_backward(build_, build_.activations[i + 1]);
    if (image.needs_gradient) plan_input_gradient();

    image_ = dnnl::memory(onednn::plain_layout(build_.dims(network_.layers()[0].out)), engine_, DNNL_MEMORY_NONE);
    const dnnl::memory& input = build_.activations[0].value;
    image_to_input_ = {dnnl::reorder(image_, input), {{DNNL_ARG_FROM, image_}, {DNNL_ARG_TO, input}}};
    plan_parameters(shares);
    check_memory(options);
    build_.plan.allocate();
    if (shares == nullptr) {
      flat_.allocate();
      initialise(options.seed);
    }
    place_parameters();
  }

  Score forward(std::span<const float> images, std::span<const std::int32_t> labels, Mode mode) override {
    const auto image_size = static_cast<std::size_t>(network_.layers()[0].out.size());
    const auto batch = static_cast<std::size_t>(build_.batch);
    if (images.size() != labels.size() * image_size) throw std::invalid_argument("as many labels as images, please");
    if (labels.size() > batch) throw std::invalid_argument("more samples than the model's batch size");
    if (mode == Mode::train && labels.size() != batch) {
      throw std::invalid_argument("training needs full batches: batch statistics of a part would differ");
    }
    if (labels.size() < batch) {
      padded_.assign(batch * image_size, 0.0f);
      std::copy(images.begin(), images.end(), padded_.begin());
      images = padded_;
    }
    image_.set_data_handle(const_cast<float*>(images.data()));
    image_to_input_.run(stream_);
    for (const auto& layer : layers_) {
      if (observer) observer->begin(layer->layer().name, mode, false);
      layer->forward(mode);
      if (observer) observer->end();
    }
    if (logits_to_f32_) logits_to_f32_.run(stream_);
    if (!has_loss()) return {};
    if (mode == Mode::train) labels_.assign(labels.begin(), labels.end());
    return kernels::cross_entropy(data(logits_), labels, classes(), mode == Mode::train ? label_smoothing_ : 0);
  }

  void backward(float scale) override {
    if (has_loss()) {
      kernels::cross_entropy_backward(data(logits_), labels_, classes(), scale, data(logits_gradient_),
                                      label_smoothing_);
    }
    if (gradient_from_f32_) gradient_from_f32_.run(stream_);
    std::size_t parameter = parameters_.size();  // the first of the layer's
    for (std::size_t i = layers_.size(); i-- > 0;) {
      if (observer) observer->begin(layers_[i]->layer().name, Mode::train, true);
      layers_[i]->backward();
      if (observer) observer->end();
      const std::size_t count = layers_[i]->layer().parameters().size();
      parameter -= count;
      if (gradients_ready && count > 0) gradients_ready(parameter, count);
    }
    if (!input_gradient_) return;
    input_sum_.run();
    input_gradient_to_f32_.run(stream_);
  }

  std::span<float> output() override { return has_loss() ? std::span<float>() : values(logits_); }
  std::span<float> output_gradient() override { return has_loss() ? std::span<float>() : values(logits_gradient_); }
  std::span<float> input_gradient() override { return input_gradient_ ? values(input_gradient_) : std::span<float>(); }

  std::span<float> weights() override { return values(weights_); }
  std::span<float> gradients() override { return values(gradients_); }

  void set_gradients(std::span<float> buffer) override {
    if (buffer.size() != elements(gradients_)) throw std::invalid_argument("a gradient buffer of another size");
    gradients_.set_data_handle(buffer.data());
    for (const CpuParameter& p : build_.parameters) p.gradient.set_data_handle(buffer.data() + p.parameter.offset);
  }

  void seed_dropout(std::uint64_t seed) override {
    for (const auto& layer : layers_) layer->seed_dropout(seed);
  }

  std::string first_nonfinite_layer() const override {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const dnnl::memory& output = build_.activations[i + 1].value;
      bool finite = true;
      with_numbers([&](const auto* y) { finite = kernels::all_finite(y, elements(output)); }, output);
      if (!finite) return layers_[i]->layer().name;
    }
    return {};
  }

  std::string first_slow_layer() const override {
    for (const auto& layer : layers_) {
      if (layer->layer().multiply_adds() == 0) continue;  // the others take little time
      for (const Implementation& used : layer->implementations()) {
        if (onednn::is_reference(used.name)) return layer->layer().name;
      }
    }
    return {};
  }

  std::size_t unfilled_bytes() const override { return build_.plan.unfilled_bytes() + flat_.unfilled_bytes(); }

  const std::vector<Parameter>& parameters() const override { return parameters_; }
  std::span<float> statistics() override { return values(statistics_); }

  std::vector<float> to_plain(const Parameter& parameter, std::span<const float> flat) const override {
    const onednn::Desc& layout = find(parameter).layout;
    std::vector<float> plain(published_size(parameter));
    copy(layout, flat.data() + parameter.offset, onednn::plain_layout(onednn::dims(layout)), plain.data());
    return plain;
  }

  void from_plain(const Parameter& parameter, std::span<const float> plain, std::span<float> flat) const override {
    if (plain.size() != published_size(parameter)) {
      throw std::invalid_argument(parameter.name + " has " + std::to_string(published_size(parameter)) +
                                  " elements, not " + std::to_string(plain.size()));
    }
    const onednn::Desc& layout = find(parameter).layout;
    copy(onednn::plain_layout(onednn::dims(layout)), plain.data(), layout, flat.data() + parameter.offset);
  }

  double train_flops_per_image() const override { return network_.train_flops(); }

 private:
  std::int64_t classes() const { return network_.layers().back().out.channels; }
  bool has_loss() const { return network_.layers_after() == 0; }

  static std::span<float> values(const dnnl::memory& memory) { return {data(memory), elements(memory)}; }

  static std::size_t published_size(const Parameter& parameter) {
    std::size_t size = 1;
    for (const std::int64_t extent : parameter.shape) size *= static_cast<std::size_t>(extent);
    return size;
  }

  const CpuParameter& find(const Parameter& parameter) const {
    const auto found = std::find_if(build_.parameters.begin(), build_.parameters.end(),
                                    [&](const CpuParameter& p) { return p.parameter.offset == parameter.offset; });
    if (found == build_.parameters.end()) throw std::logic_error("parameter of another model: " + parameter.name);
    return *found;
  }

  void copy(const onednn::Desc& from_layout, const float* from, const onednn::Desc& to_layout, float* to) const {
    dnnl::memory source(from_layout, engine_, const_cast<float*>(from));
    dnnl::memory target(to_layout, engine_, to);
    dnnl::reorder(source, target).execute(stream_, source, target);
  }

  static Call copying(const dnnl::memory& from, const dnnl::memory& to) {
    return {dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
  }

  // Puts plain fp32 copies between the network and its loss or the next stage.
  void end_in_plain_f32() {
    const onednn::Desc f32 = onednn::plain_layout(onednn::dims(logits_.get_desc()));
    const dnnl::memory logits = build_.plan.acquire(f32), gradient = build_.plan.acquire(f32);
    logits_to_f32_ = copying(logits_, logits);
    gradient_from_f32_ = copying(gradient, logits_gradient_);
    logits_ = logits;
    logits_gradient_ = gradient;
  }

  // Adds up what the layers contribute to the image's gradient, as a plain fp32 copy for the stage before.
  void plan_input_gradient() {
    input_sum_.plan(build_.activations[0], build_);
    input_gradient_ = build_.plan.acquire(onednn::plain_layout(build_.dims(network_.layers()[0].out)));
    input_gradient_to_f32_ = copying(input_sum_.memory(), input_gradient_);
  }

  // Lays all parameters, and all running statistics, one after another, in this model's own memory or in that of
  // another.
  void plan_parameters(const CpuModel* shares) {
    std::size_t total = 0;
    for (CpuParameter& p : build_.parameters) {
      p.parameter.offset = total;
      total += round_up(p.parameter.size);
      parameters_.push_back(p.parameter);
    }
    std::size_t statistics = 0;
    for (const dnnl::memory& memory : build_.statistics) statistics += round_up(elements(memory));
    if (shares != nullptr) {
      weights_ = shares->weights_;
      gradients_ = shares->gradients_;
      statistics_ = shares->statistics_;
      return;
    }
    const auto vector = [](std::size_t size) {
      return onednn::plain_layout({static_cast<dnnl::memory::dim>(std::max(size, line))});
    };
    weights_ = flat_.acquire(vector(total));
    gradients_ = flat_.acquire(vector(total));
    statistics_ = flat_.acquire(vector(statistics));
  }

  // Checked before the memory is used: a system that overcommits memory would kill the process.
  void check_memory(const ModelOptions& options) const {
    const std::size_t bytes = build_.plan.bytes() + flat_.bytes();
    if (options.memory_limit == 0 || bytes <= options.memory_limit) return;
    throw Error("‹batch-size› " + std::to_string(options.batch_size),
                "takes " + std::to_string(bytes >> 20) + " MiB, and a rank has " +
                    std::to_string(options.memory_limit >> 20) + " here",
                "lower ‹batch-size›", Status::usage);
  }

  // Gives oneDNN the places of the parameters and the statistics.
  void place_parameters() {
    for (const CpuParameter& p : build_.parameters) {
      p.weights.set_data_handle(data(weights_) + p.parameter.offset);
      p.gradient.set_data_handle(data(gradients_) + p.parameter.offset);
    }
    float* next = data(statistics_);
    for (const dnnl::memory& memory : build_.statistics) {
      memory.set_data_handle(next);
      next += round_up(elements(memory));
    }
  }

  void initialise(std::uint64_t seed) {
    float* statistic = data(statistics_);
    bool variance = false;
    for (const dnnl::memory& memory : build_.statistics) {
      std::fill_n(statistic, elements(memory), variance ? 1.0f : 0.0f);
      statistic += round_up(elements(memory));
      variance = !variance;
    }
    std::size_t next = 0;
    for (const Layer& layer : network_.layers()) {
      for (const ParameterShape& shape : layer.parameters()) {
        from_plain(parameters_[next++], initial_values(layer, shape, seed), weights());
      }
    }
  }

  Network network_;
  dnnl::engine engine_;
  mutable dnnl::stream stream_;
  CpuBuild build_;
  MemoryPlan flat_{engine_};
  std::vector<std::unique_ptr<CpuLayer>> layers_;
  std::vector<Parameter> parameters_;
  dnnl::memory image_, logits_, logits_gradient_, weights_, gradients_, statistics_;
  dnnl::memory input_gradient_;  // of a stage behind the first
  SummedGradient input_sum_;
  Call image_to_input_, input_gradient_to_f32_;
  Call logits_to_f32_, gradient_from_f32_;  // only for bf16 and before another stage
  double label_smoothing_ = 0;
  std::vector<float> padded_;
  std::vector<std::int32_t> labels_;
};

}  // namespace

std::unique_ptr<Model> make_cpu_model(const Network& network, const ModelOptions& options) {
  return std::make_unique<CpuModel>(network, options);
}

std::unique_ptr<StageModel> make_cpu_stage(const Network& part, const ModelOptions& options, StageModel* shares) {
  return std::make_unique<CpuModel>(part, options, dynamic_cast<CpuModel*>(shares));
}

std::unique_ptr<Model> make_cpu_model(const ModelOptions& options) {
  return make_cpu_model(build_network(options), options);
}

}  // namespace paceline::train
