// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "trainer/backend/cpu/layers.h"

namespace paceline::train {
namespace {

using Tag = dnnl::memory::format_tag;

int threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

winograd::Shape shape_of(const Layer& layer, std::int64_t batch) {
  const auto extent = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  return {extent(batch), extent(layer.out.height), extent(layer.out.width), extent(layer.in.channels),
          extent(layer.out.channels)};
}

onednn::Desc in_blocks(const winograd::Code& code, const onednn::Dims& image) {
  return {image, code.bf16 ? onednn::Type::bf16 : onednn::Type::f32, code.block == 8 ? Tag::nChw8c : Tag::nChw16c};
}

class WinogradConvolution final : public CpuLayer {
 public:
  WinogradConvolution(const Layer& layer, CpuBuild& build, const winograd::Code& code)
      : CpuLayer(layer), code_(code), shape_(shape_of(layer, build.batch)), threads_(threads()) {
    Activation& input = build.activation(layer.input);
    Activation& output =
        build.activations.emplace_back();  // capacity was reserved, so references to other elements stay valid
    output.value = build.plan.acquire(in_blocks(code, build.dims(layer.out)));
    if (!input.value) input.value = build.plan.acquire(in_blocks(code, build.dims(layer.in)));
    source_ = input.value;
    output_ = output.value;
    const std::vector<ParameterShape> shapes = layer.parameters();
    const CpuParameter& weight =
        build.add_parameter(shapes[0], {{layer.out.channels, layer.in.channels, layer.kernel, layer.kernel},
                                        onednn::Type::f32,
                                        code.block == 8 ? Tag::OIhw8i8o : Tag::OIhw16i16o});
    weights_ = weight.weights;
    weights_gradient_ = weight.gradient;
    if (layer.bias) {
      const CpuParameter& bias = build.add_parameter(shapes[1], onednn::plain_layout({layer.out.channels}));
      bias_ = bias.weights;
      bias_gradient_ = bias.gradient;
    }
    forward_work_ = borrow_work(build);
  }

  void plan_backward(CpuBuild& build, Activation& output) override {
    gradient_.plan(output, build);
    Activation& input = build.activation(layer_.input);
    if (input.needs_gradient) {
      source_gradient_ = build.plan.acquire(source_.get_desc());
      input.gradients.push_back(source_gradient_);
    }
    backward_work_ = borrow_work(build);
    build.plan.release(gradient_.memory());
  }

  void forward(Mode) override {
    code_.forward(shape_, source_.get_data_handle(), data(weights_), layer_.bias ? data(bias_) : nullptr,
                  output_.get_data_handle(), data(forward_work_), threads_);
  }

  void backward() override {
    gradient_.run();
    const void* const gradient = gradient_.memory().get_data_handle();
    code_.backward_weights(shape_, source_.get_data_handle(), gradient, data(weights_gradient_),
                           layer_.bias ? data(bias_gradient_) : nullptr, data(backward_work_), threads_);
    if (!source_gradient_) return;
    code_.backward_data(shape_, gradient, data(weights_), source_gradient_.get_data_handle(), data(backward_work_),
                        threads_);
  }

  std::vector<Implementation> implementations() const override {
    const std::string name = "winograd, blocks of " + std::to_string(code_.block);
    std::vector<Implementation> result{{"forward", name}, {"weights' gradient", name}};
    if (source_gradient_ || layer_.input != 0) result.push_back({"data's gradient", name});
    return result;
  }

 private:
  // Work memory, which other layers use between calls.
  dnnl::memory borrow_work(CpuBuild& build) const {
    const std::size_t size = code_.work_size(shape_, threads_);
    const dnnl::memory work = build.plan.acquire(onednn::plain_layout({static_cast<dnnl::memory::dim>(size)}));
    build.plan.release(work);
    return work;
  }

  const winograd::Code& code_;
  winograd::Shape shape_;
  int threads_;
  dnnl::memory source_, output_, weights_, weights_gradient_, bias_, bias_gradient_, source_gradient_;
  dnnl::memory forward_work_, backward_work_;
  SummedGradient gradient_;
};

// Whether Winograd's algorithm is used. Outside of these bounds the direct algorithm was faster, measured on AVX2 with
// 16 … 512 channels and on AVX-512 (Zen 4), where 32 channels are about equal and 16 channels, images of 2×2 and of 5×5
// pixels take 1.2 to 1.6 times as long. The direct algorithm is also faster for fewer than about 5 images of 4×4 pixels
// and 512 channels (on AVX-512 8), but the choice does not depend on the batch, so that an image's activations, and the
// ReLUs that let it through, are the same to the bit however a batch is divided among ranks.
// In bf16 the direct algorithm is twice as fast as in fp32. On the Zen 4, Winograd's took 0.73 to 0.86 of its time for
// 56×56 and 28×28 pixels, about as long for 14×14, which fill three quarters of their tiles, and longer for smaller
// images.
bool takes(const winograd::Code& code, const Layer& layer, const CpuBuild& build) {
  if (!build.winograd) return false;
  if (layer.kernel != 3 || layer.stride != 1 || layer.padding != 1) return false;
  const auto [in, height, width] = layer.in;
  const std::int64_t out = layer.out.channels;
  if (std::min(in, out) < 32 || in % 16 != 0 || out % 16 != 0) return false;
  const std::int64_t tiles = ((height + 3) / 4) * ((width + 3) / 4);
  if (height * width < 8 * tiles) return false;  // more than half of the computed pixels are outside of the image
  if (code.bf16 && (height * width != 16 * tiles || tiles < 16)) return false;
  const dnnl::memory& input = build.activations[static_cast<std::size_t>(layer.input)].value;
  return !input || onednn::same_layout(input.get_desc(), in_blocks(code, build.dims(layer.in)));
}

}  // namespace

const winograd::Code* winograd_code(bool bf16) {
  return onednn::has_winograd() ? nullptr : winograd::code_for_blocks_of(onednn::channels_of_a_block(), bf16);
}

std::unique_ptr<CpuLayer> make_winograd_convolution(const Layer& layer, CpuBuild& build) {
  const winograd::Code* const code = winograd_code(build.type == onednn::Type::bf16);
  if (code == nullptr || !takes(*code, layer, build)) return nullptr;
  return std::make_unique<WinogradConvolution>(layer, build, *code);
}

}  // namespace paceline::train
