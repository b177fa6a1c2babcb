// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cpu/onednn.h"

namespace paceline::train::onednn {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;
using Flags = dnnl::normalization_flags;

// Builds a primitive descriptor from the operation's arguments. oneDNN 2 takes an operation descriptor and then, for
// gradients, the forward descriptor (the hint); oneDNN 3 takes all arguments at once, the engine first.
#if DNNL_VERSION_MAJOR < 3
template <class Primitive, class... Arguments>
typename Primitive::primitive_desc forward_desc(const dnnl::engine& engine, const Attributes& attributes,
                                                Arguments&&... arguments) {
  return {typename Primitive::desc(std::forward<Arguments>(arguments)...), attributes, engine};
}
template <class Primitive, class Hint, class... Arguments>
typename Primitive::primitive_desc backward_desc(const dnnl::engine& engine, const Attributes& attributes,
                                                 const Hint& hint, Arguments&&... arguments) {
  return {typename Primitive::desc(std::forward<Arguments>(arguments)...), attributes, engine, hint};
}
#else
template <class Primitive, class... Arguments>
typename Primitive::primitive_desc forward_desc(const dnnl::engine& engine, const Attributes& attributes,
                                                Arguments&&... arguments) {
  return {engine, std::forward<Arguments>(arguments)..., attributes};
}
template <class Primitive, class Hint, class... Arguments>
typename Primitive::primitive_desc backward_desc(const dnnl::engine& engine, const Attributes& attributes,
                                                 const Hint& hint, Arguments&&... arguments) {
  return {engine, std::forward<Arguments>(arguments)..., hint, attributes};
}
#endif

}  // namespace

Desc plain_layout(const Dims& dims, Type type) {
  Dims strides(dims.size());
  dnnl::memory::dim stride = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return {dims, type, strides};
}

Dims dims(const Desc& desc) {
#if DNNL_VERSION_MAJOR < 3
  return desc.dims();
#else
  return desc.get_dims();
#endif
}

Type type(const Desc& desc) {
#if DNNL_VERSION_MAJOR < 3
  return desc.data_type();
#else
  return desc.get_data_type();
#endif
}

bool same_layout(const Desc& a, const Desc& b) { return a == b; }

std::size_t bytes(const Desc& desc) { return desc.get_size(); }

bool is_reference(std::string_view implementation) { return implementation.find("ref") != std::string_view::npos; }

namespace {

// An instruction set has the bits of all sets that it contains.
bool has(dnnl::cpu_isa isa) {
  const auto wanted = static_cast<unsigned>(isa);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
}

}  // namespace

std::size_t channels_of_a_block() {
  if (has(dnnl::cpu_isa::avx512_core)) return 16;
  return has(dnnl::cpu_isa::avx2) ? 8 : 0;
}

bool has_winograd() { return DNNL_VERSION_MAJOR < 3 && has(dnnl::cpu_isa::avx512_core); }

std::string version() {
  const dnnl_version_t& v = *dnnl_version();
  return std::to_string(v.major) + "." + std::to_string(v.minor) + "." + std::to_string(v.patch);
}

std::string instructions() {
  // The value of an instruction set contains the values of the smaller sets.
  using Isa = dnnl::cpu_isa;
  constexpr std::pair<Isa, const char*> known[]{
      {Isa::avx512_core_amx, "AVX512_CORE_AMX"},
      {Isa::avx512_core_bf16, "AVX512_CORE_BF16"},
      {Isa::avx512_core_vnni, "AVX512_CORE_VNNI"},
      {Isa::avx512_core, "AVX512_CORE"},
      {Isa::avx2_vnni, "AVX2_VNNI"},
      {Isa::avx2, "AVX2"},
      {Isa::avx, "AVX"},
      {Isa::sse41, "SSE41"},
  };
  for (const auto& [isa, name] : known) {
    if (has(isa)) return name;
  }
  return "none";
}

std::string why_no_bf16() {
#if DNNL_VERSION_MAJOR > 3 || (DNNL_VERSION_MAJOR == 3 && DNNL_VERSION_MINOR >= 2)
  if (has(dnnl::cpu_isa::avx512_core_bf16)) return {};
  return "this processor has neither AVX512-BF16 nor AMX, without which bf16 is slower than f32";
#else
  return "it needs oneDNN 3.2 or newer, and this build has " + std::to_string(DNNL_VERSION_MAJOR) + "." +
         std::to_string(DNNL_VERSION_MINOR) + ": run samples/setup.sh --onednn and build anew";
#endif
}

namespace {

// Winograd's F(4×4, 3×3) does 36 multiplications where the direct algorithm does 144, but computes whole tiles and
// transforms the weights. The choice for forward and for the data's gradient does not depend on the batch size, so that
// an image's activations, and the ReLUs that let it through, are the same to the bit however a batch is divided among
// ranks.
bool winograd_is_faster(const Dims& weights, const Dims& output, const Window& window, bool weights_gradient) {
  if (window.kernel != Dims{3, 3} || window.stride != Dims{1, 1} || window.padding != Dims{1, 1}) return false;
  if (weights[0] < 16 || weights[1] < 16) return false;  // a vector of channels
  const auto tiles = static_cast<double>(((output[2] + 3) / 4) * ((output[3] + 3) / 4));
  const auto full_tiles = static_cast<double>(output[2] * output[3]) / 16;
  if (!weights_gradient) return tiles >= 4 && full_tiles >= 0.75 * tiles;
  // In units of a full tile's time in the direct algorithm, measured with 64 … 512 channels on AVX-512.
  const auto batch = static_cast<double>(output[0]);
  return 0.5 * tiles * batch + 12 < full_tiles * batch;
}

// Calls make(algorithm) with Winograd's algorithm if it is wanted and implemented, else with the direct one.
template <class Make>
auto with_algorithm(bool winograd, Make make) {
  if (winograd) {
    try {
      return make(algorithm::convolution_winograd);
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented && error.status != dnnl_invalid_arguments) throw;
    }
  }
  return make(algorithm::convolution_direct);
}

// Replaces oneDNN's reference code, which is hundreds of times slower, by what make() returns, unless that is reference
// code as well. In blocked layouts the reference code is oneDNN's only code for many convolutions: with AVX2 for the
// weights' gradient of a 3×3 convolution over 2×2 pixels (VGG's last stage for CIFAR), with AVX and SSE4.1 for most
// gradients, and with AVX-512 for 3×3 convolutions in blocks of 16 whose channels do not fill the blocks. In plain
// layouts, oneDNN multiplies matrices on every processor.
template <class PrimitiveDesc, class Make>
void avoid_reference(PrimitiveDesc& desc, Make make) {
  if (!is_reference(desc.impl_info_str())) return;
  const PrimitiveDesc other = make();
  if (!is_reference(other.impl_info_str())) desc = other;
}

// The layout of the first convolution's output, from which those of the layers behind it follow. With AVX-512 oneDNN
// would choose blocks of 16, for which it has no 3×3 convolutions unless the channels fill the blocks; it has AVX2's
// code for blocks of 8. It has none for fewer channels than 8.
Desc first_output(const Dims& output, Type type) {
  const std::size_t block = channels_of_a_block();
  if (type != Type::f32 || block == 0) return any_layout(output, type);
  if (output[1] < 8) return plain_layout(output);
  if (block == 16 && output[1] % 16 != 0) return {output, type, dnnl::memory::format_tag::nChw8c};
  return any_layout(output, type);
}

// oneDNN 3.2 copies the pixels that a strided 1×1 convolution reads into its work memory. If the channels do not fill a
// vector, its code for the weights' gradient writes beyond that memory: seen with guard pages on AVX2 (4 channels to 8
// of 32×32 pixels) and on an emulated AVX-512 (8 channels to 16 of 48×48 pixels, by about 2 KB). On all processors and
// versions we give such a convolution plain layouts, for which oneDNN uses other code.
bool overflows(const Dims& weights, const Window& window) {
  return window.kernel == Dims{1, 1} && window.stride != Dims{1, 1} && weights[1] % 16 != 0;
}

}  // namespace

Convolution convolution(const dnnl::engine& engine, const Desc& source, const Dims& weights, bool has_bias,
                        const Dims& output, const Window& window, bool data_gradient, bool winograd,
                        const Attributes& attributes) {
  const auto& [kernel, stride, padding] = window;
  const Type numbers = type(source);
  const Desc any_weights = any_layout(weights, numbers);
  const bool first = source == any_layout(dims(source), numbers);
  const Desc any_output = first ? first_output(output, numbers) : any_layout(output, numbers);
  const Desc plain_source = plain_layout(dims(source), numbers), plain_output = plain_layout(output, numbers);
  const Desc bias = has_bias ? plain_layout({output[1]}) : Desc();
  const bool fast = winograd && winograd_is_faster(weights, output, window, false);
  const bool fast_weights = winograd && winograd_is_faster(weights, output, window, true);
  Convolution result;
  result.forward = with_algorithm(fast, [&](algorithm a) {
    return forward_desc<dnnl::convolution_forward>(engine, attributes, prop_kind::forward_training, a, source,
                                                   any_weights, bias, any_output, stride, padding, padding);
  });
  avoid_reference(result.forward, [&] {
    return forward_desc<dnnl::convolution_forward>(engine, attributes, prop_kind::forward_training,
                                                   algorithm::convolution_direct, plain_source, any_weights, bias,
                                                   plain_output, stride, padding, padding);
  });
  const Desc src = result.forward.src_desc();
  const Desc dst = result.forward.dst_desc();
  const Desc weights_gradient = numbers == Type::f32 ? result.forward.weights_desc() : any_layout(weights);
  result.backward_weights = with_algorithm(fast_weights, [&](algorithm a) {
    return backward_desc<dnnl::convolution_backward_weights>(engine, attributes, result.forward, a, src,
                                                             weights_gradient, bias, dst, stride, padding, padding);
  });
  const auto plain_weights_gradient = [&] {
    return backward_desc<dnnl::convolution_backward_weights>(
        engine, attributes, result.forward, algorithm::convolution_direct, plain_source, any_layout(weights), bias,
        plain_output, stride, padding, padding);
  };
  if (overflows(weights, window)) {
    result.backward_weights = plain_weights_gradient();
  } else {
    avoid_reference(result.backward_weights, plain_weights_gradient);
  }
  if (data_gradient) {
    result.backward_data = with_algorithm(fast, [&](algorithm a) {
      return backward_desc<dnnl::convolution_backward_data>(engine, attributes, result.forward, a, src, any_weights,
                                                            dst, stride, padding, padding);
    });
    avoid_reference(*result.backward_data, [&] {
      return backward_desc<dnnl::convolution_backward_data>(engine, attributes, result.forward,
                                                            algorithm::convolution_direct, plain_source, any_weights,
                                                            plain_output, stride, padding, padding);
    });
  }
  return result;
}

BatchNorm batch_norm(const dnnl::engine& engine, const Desc& data, float epsilon, bool relu, bool frozen,
                     const Attributes& attributes) {
  Flags flags = Flags::use_scale | Flags::use_shift;
  if (relu) flags |= Flags::fuse_norm_relu;
  const Flags given = flags | Flags::use_global_stats;
  const Flags train = frozen ? given : flags;
#if DNNL_VERSION_MAJOR < 3
  const auto forward = [&](prop_kind kind, Flags f) {
    return forward_desc<dnnl::batch_normalization_forward>(engine, attributes, kind, data, epsilon, f);
  };
#else
  const auto forward = [&](prop_kind kind, Flags f) {
    return forward_desc<dnnl::batch_normalization_forward>(engine, attributes, kind, data, data, epsilon, f);
  };
#endif
  BatchNorm result;
  result.train = forward(prop_kind::forward_training, train);
  result.evaluate = forward(prop_kind::forward_inference, given);
#if DNNL_VERSION_MAJOR < 3
  result.backward = backward_desc<dnnl::batch_normalization_backward>(engine, attributes, result.train,
                                                                      prop_kind::backward, data, data, epsilon, train);
#else
  result.backward = backward_desc<dnnl::batch_normalization_backward>(
      engine, attributes, result.train, prop_kind::backward, data, data, data, epsilon, train);
#endif
  return result;
}

Pooling pooling(const dnnl::engine& engine, algorithm algorithm, const Desc& source, const Dims& output,
                const Window& window, const Attributes& attributes) {
  const auto& [kernel, stride, padding] = window;
  Pooling result;
#if DNNL_VERSION_MAJOR < 3
  result.forward =
      forward_desc<dnnl::pooling_forward>(engine, attributes, prop_kind::forward_training, algorithm, source,
                                          any_layout(output, type(source)), stride, kernel, padding, padding);
  result.backward = backward_desc<dnnl::pooling_backward>(engine, attributes, result.forward, algorithm, source,
                                                          result.forward.dst_desc(), stride, kernel, padding, padding);
#else
  const Dims dense{0, 0};  // dilation
  result.forward =
      forward_desc<dnnl::pooling_forward>(engine, attributes, prop_kind::forward_training, algorithm, source,
                                          any_layout(output, type(source)), stride, kernel, dense, padding, padding);
  result.backward =
      backward_desc<dnnl::pooling_backward>(engine, attributes, result.forward, algorithm, source,
                                            result.forward.dst_desc(), stride, kernel, dense, padding, padding);
#endif
  return result;
}

Linear linear(const dnnl::engine& engine, const Desc& source, const Dims& weights, const Desc& output, bool has_bias,
              bool data_gradient, const Attributes& attributes) {
  const Type numbers = type(source);
  const Desc bias = has_bias ? plain_layout({weights[0]}) : Desc();
  // In blocked layouts on AVX2 oneDNN 3.2 only has its reference code for the weights' gradient, which is hundreds of
  // times slower. On all processors it adds products one after another, with three times the error.
  const bool plain = DNNL_VERSION_MAJOR >= 3 && numbers == Type::f32 && weights.size() == 2;
  const Desc any_weights = plain ? plain_layout(weights) : any_layout(weights, numbers);
  Linear result;
  result.forward = forward_desc<dnnl::inner_product_forward>(engine, attributes, prop_kind::forward_training, source,
                                                             any_weights, bias, output);
  const Desc weights_gradient = numbers == Type::f32 ? result.forward.weights_desc() : any_layout(weights);
  result.backward_weights = backward_desc<dnnl::inner_product_backward_weights>(engine, attributes, result.forward,
                                                                                source, weights_gradient, bias, output);
  if (data_gradient) {
    result.backward_data = backward_desc<dnnl::inner_product_backward_data>(engine, attributes, result.forward, source,
                                                                            any_weights, output);
  }
  return result;
}

}  // namespace paceline::train::onednn
