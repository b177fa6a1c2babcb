// SPDX-License-Identifier: Apache-2.0
// What oneDNN takes for the convolutions and batch norms of a training step, and for nothing else: no ReLU that is not
// part of a batch norm, no pooling, no linear layer, no loss, no optimizer, no copies between layouts. The ceiling that
// the trainer's own step is measured against (speed.py). Each primitive has the layouts that oneDNN chooses for it and
// runs once a step in the order of training, on activations of its own: what an earlier one left in the caches is what
// training leaves there.
//
//   ceiling_bench MODEL IMAGE_SIZE BATCH STEPS [f32|bf16]      threads: OMP_NUM_THREADS; prints one JSON object
//   ceiling_bench about      oneDNN's version and the best instructions that it may use, as one
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "trainer/backend/cpu/layers.h"
#include "trainer/nn/models.h"

namespace {

using namespace paceline::train;

class Ceiling {
 public:
  Ceiling(const Network& network, std::int64_t batch, onednn::Type type)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_), plan_(engine_), batch_(batch) {
    for (const Layer& layer : network.layers()) {
      if (layer.kind == LayerKind::linear) break;  // and what follows
      outputs_.push_back(layer.kind == LayerKind::input ? Output{onednn::any_layout(dims(layer.out), type), {}}
                                                        : add(layer));
    }
    for (auto backward = backward_.rbegin(); backward != backward_.rend(); ++backward) (*backward)();
    plan_.allocate();
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 0.05f);
    for (const dnnl::memory& memory : drawn_) {
      std::vector<float> values(elements(memory));
      for (float& value : values) value = normal(random);
      dnnl::memory from(onednn::plain_layout(onednn::dims(memory.get_desc())), engine_, values.data());
      dnnl::memory to = memory;
      dnnl::reorder(from, to).execute(stream_, from, to);
    }
  }

  void step() {
    for (const Call& call : calls_) call.run(stream_);
    stream_.wait();
  }

 private:
  struct Output {
    onednn::Desc desc;
    dnnl::memory memory;
  };

  onednn::Dims dims(const Shape& shape) const { return {batch_, shape.channels, shape.height, shape.width}; }
  static std::size_t elements(const dnnl::memory& memory) {
    std::size_t count = 1;
    for (const auto extent : onednn::dims(memory.get_desc())) count *= static_cast<std::size_t>(extent);
    return count;
  }
  dnnl::memory draw(const onednn::Desc& desc) { return drawn_.emplace_back(plan_.acquire(desc)); }

  // The tensor of the layer's input in that layout: the one that was computed, where it has it.
  dnnl::memory source(const Layer& layer, const onednn::Desc& desc) {
    const Output& input = outputs_[static_cast<std::size_t>(layer.input)];
    return input.memory && onednn::same_layout(input.memory.get_desc(), desc) ? input.memory : draw(desc);
  }

  // The output's gradient: what the layer behind it just wrote, where it has that layout; else one of its own.
  dnnl::memory gradient(const onednn::Desc& desc) {
    if (!last_gradient_ || !onednn::same_layout(last_gradient_.get_desc(), desc)) {
      next_gradient(desc);
      drawn_.push_back(last_gradient_);
      plan_.share(last_gradient_);  // kept: values that went round from step to step would grow or vanish
    }
    return last_gradient_;
  }
  dnnl::memory next_gradient(const onednn::Desc& desc) {
    if (before_) plan_.release(before_);
    before_ = last_gradient_;
    return last_gradient_ = plan_.acquire(desc);
  }

  Output add(const Layer& layer) {
    const Output& input = outputs_[static_cast<std::size_t>(layer.input)];
    const onednn::Window window{
        {layer.kernel, layer.kernel}, {layer.stride, layer.stride}, {layer.padding, layer.padding}};
    switch (layer.kind) {
      case LayerKind::convolution:
        return convolution(layer, input.desc, window);
      case LayerKind::batch_norm:
        return batch_norm(layer, input.desc);
      case LayerKind::max_pool:
      case LayerKind::average_pool:  // for the layout alone
        return {onednn::pooling(engine_, dnnl::algorithm::pooling_max, input.desc, dims(layer.out), window)
                    .forward.dst_desc(),
                {}};
      default:
        return input;
    }
  }

  Output convolution(const Layer& layer, const onednn::Desc& input, const onednn::Window& window) {
    const onednn::Dims weights{layer.out.channels, layer.in.channels, layer.kernel, layer.kernel};
    const auto d =
        onednn::convolution(engine_, input, weights, layer.bias, dims(layer.out), window, layer.input != 0, true);
    const dnnl::memory src = source(layer, d.forward.src_desc()), dst = plan_.acquire(d.forward.dst_desc());
    Call forward{dnnl::convolution_forward(d.forward),
                 {{DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, draw(d.forward.weights_desc())}, {DNNL_ARG_DST, dst}}};
    const onednn::Desc bias = onednn::plain_layout({layer.out.channels});
    if (layer.bias) forward.arguments[DNNL_ARG_BIAS] = draw(bias);
    calls_.push_back(forward);
    backward_.push_back([this, d, src, layer, bias] {
      const dnnl::memory dy = gradient(d.backward_weights.diff_dst_desc());
      const auto& desc = d.backward_weights;
      const bool same = onednn::same_layout(desc.src_desc(), src.get_desc());
      Call weights_gradient{dnnl::convolution_backward_weights(desc),
                            {{DNNL_ARG_SRC, same ? src : draw(desc.src_desc())},
                             {DNNL_ARG_DIFF_DST, dy},
                             {DNNL_ARG_DIFF_WEIGHTS, plan_.acquire(desc.diff_weights_desc())}}};
      if (layer.bias) weights_gradient.arguments[DNNL_ARG_DIFF_BIAS] = plan_.acquire(bias);
      calls_.push_back(weights_gradient);
      if (!d.backward_data) return;
      const dnnl::memory own = gradient(d.backward_data->diff_dst_desc());
      calls_.push_back({dnnl::convolution_backward_data(*d.backward_data),
                        {{DNNL_ARG_DIFF_DST, own},
                         {DNNL_ARG_WEIGHTS, draw(d.backward_data->weights_desc())},
                         {DNNL_ARG_DIFF_SRC, next_gradient(d.backward_data->diff_src_desc())}}});
    });
    return {d.forward.dst_desc(), dst};
  }

  Output batch_norm(const Layer& layer, const onednn::Desc& input) {
    const auto d = onednn::batch_norm(engine_, input, batch_norm_epsilon, layer.relu, false);
    const onednn::Desc vector = onednn::plain_layout({layer.out.channels});
    const dnnl::memory src = source(layer, input), dst = plan_.acquire(d.train.dst_desc());
    const dnnl::memory scale = draw(vector), shift = draw(vector);
    const dnnl::memory mean = plan_.acquire(vector), variance = plan_.acquire(vector);
    Call train{dnnl::batch_normalization_forward(d.train),
               {{DNNL_ARG_SRC, src},
                {DNNL_ARG_MEAN, mean},
                {DNNL_ARG_VARIANCE, variance},
                {DNNL_ARG_SCALE, scale},
                {DNNL_ARG_SHIFT, shift},
                {DNNL_ARG_DST, dst}}};
    dnnl::memory workspace;
    if (layer.relu) train.arguments[DNNL_ARG_WORKSPACE] = workspace = plan_.acquire(d.train.workspace_desc());
    calls_.push_back(train);
    backward_.push_back([=, this] {
      const dnnl::memory dy = gradient(input);
      Call call{dnnl::batch_normalization_backward(d.backward),
                {{DNNL_ARG_SRC, src},
                 {DNNL_ARG_MEAN, mean},
                 {DNNL_ARG_VARIANCE, variance},
                 {DNNL_ARG_SCALE, scale},
                 {DNNL_ARG_DIFF_SCALE, plan_.acquire(vector)},
                 {DNNL_ARG_DIFF_SHIFT, plan_.acquire(vector)},
                 {DNNL_ARG_DIFF_DST, dy},
                 {DNNL_ARG_DIFF_SRC, next_gradient(input)}}};
      if (onednn::batch_norm_backward_takes_shift) call.arguments[DNNL_ARG_SHIFT] = shift;
      if (workspace) call.arguments[DNNL_ARG_WORKSPACE] = workspace;
      calls_.push_back(call);
    });
    return {d.train.dst_desc(), dst};
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  MemoryPlan plan_;
  std::int64_t batch_;
  std::vector<Output> outputs_;  // by layer
  std::vector<dnnl::memory> drawn_;
  dnnl::memory last_gradient_, before_;
  std::vector<Call> calls_;
  std::vector<std::function<void()>> backward_;  // appends a layer's calls
};

}  // namespace

int main(int argc, char** argv) {
  ModelOptions options;
  int steps = 0;
  if (argc >= 5) {
    options.name = argv[1];
    options.image_size = std::atoi(argv[2]);
    options.batch_size = std::atoi(argv[3]);
    steps = std::atoi(argv[4]);
    options.cifar_stem = options.image_size <= 64;
  }
  if (argc == 2 && std::string(argv[1]) == "about") {
    std::printf("{\"onednn\": \"%s\", \"instructions\": \"%s\"}\n", onednn::version().c_str(),
                onednn::instructions().c_str());
    return 0;
  }
  const std::string type = argc > 5 ? argv[5] : "f32";
  if (options.image_size < 8 || options.batch_size < 1 || steps < 1 || (type != "f32" && type != "bf16")) {
    std::fprintf(stderr, "usage: ceiling_bench MODEL IMAGE_SIZE BATCH STEPS [f32|bf16]\n       ceiling_bench about\n");
    return 2;
  }
  try {
    Ceiling ceiling(build_network(options), options.batch_size,
                    type == "bf16" ? onednn::Type::bf16 : onednn::Type::f32);
    ceiling.step();
    std::printf("{\"seconds\": [");
    for (int i = 0; i < steps; ++i) {
      const auto start = std::chrono::steady_clock::now();
      ceiling.step();
      std::printf("%s%.6f", i ? ", " : "",
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::printf("]}\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ceiling_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
