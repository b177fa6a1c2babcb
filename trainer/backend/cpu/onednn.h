// SPDX-License-Identifier: Apache-2.0
// The primitive descriptors that this backend needs, written once for oneDNN 2 (operation descriptors) and once for
// oneDNN 3 (none). No other file depends on the version.
#pragma once

#include <dnnl_version.h>

#include <dnnl.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace paceline::train::onednn {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Type = dnnl::memory::data_type;
using Attributes = dnnl::primitive_attr;  // of every primitive of a layer; training uses the default ones

// A description that leaves the layout to the primitive.
inline Desc any_layout(const Dims& dims, Type type = Type::f32) { return {dims, type, dnnl::memory::format_tag::any}; }
Desc plain_layout(const Dims& dims, Type type = Type::f32);  // row-major
Dims dims(const Desc& desc);
Type type(const Desc& desc);
bool same_layout(const Desc& a, const Desc& b);
std::size_t bytes(const Desc& desc);

// Whether this implementation, as a primitive descriptor names it, is oneDNN's slow reference code: "ref:any" or, for
// batch norms, "bnorm_ref:any".
bool is_reference(std::string_view implementation);

// The channels in a block of the layouts that fp32 convolutions choose: 16 with AVX-512, 8 with AVX2; 0 with less,
// where it depends on the layer.
std::size_t channels_of_a_block();

// Whether oneDNN has Winograd's algorithm here: version 2 with AVX-512.
bool has_winograd();

// The version of the library at run time, such as "3.2.0", and the best instruction set that it uses, such as "AVX2".
std::string version();
std::string instructions();

// The reason why activations cannot be bf16 here; empty if they can.
std::string why_no_bf16();

struct Window {
  Dims kernel, stride, padding;  // two extents each; padding is the same on both sides
};

struct Convolution {
  dnnl::convolution_forward::primitive_desc forward;
  dnnl::convolution_backward_weights::primitive_desc backward_weights;
  std::optional<dnnl::convolution_backward_data::primitive_desc> backward_data;
};
// source may have any layout; its type is that of the weights and the output. Biases and the gradients of weights and
// biases are fp32. All three primitives may want other layouts than that of the source or of each other, because
// oneDNN's reference code is avoided: the layer copies. has_bias: a bias with one element for each output channel.
// winograd: use Winograd's algorithm where oneDNN has it and it is faster.
Convolution convolution(const dnnl::engine& engine, const Desc& source, const Dims& weights, bool has_bias,
                        const Dims& output, const Window& window, bool data_gradient, bool winograd,
                        const Attributes& attributes = {});

struct BatchNorm {
  dnnl::batch_normalization_forward::primitive_desc train, evaluate;
  dnnl::batch_normalization_backward::primitive_desc backward;
};
// frozen: training uses given statistics too.
BatchNorm batch_norm(const dnnl::engine& engine, const Desc& data, float epsilon, bool relu, bool frozen,
                     const Attributes& attributes = {});

inline constexpr bool batch_norm_backward_takes_shift =
    DNNL_VERSION_MAJOR < 3;  // although the result does not depend on it

struct Pooling {
  dnnl::pooling_forward::primitive_desc forward;
  dnnl::pooling_backward::primitive_desc backward;
};
Pooling pooling(const dnnl::engine& engine, dnnl::algorithm algorithm, const Desc& source, const Dims& output,
                const Window& window, const Attributes& attributes = {});

struct Linear {
  dnnl::inner_product_forward::primitive_desc forward;
  dnnl::inner_product_backward_weights::primitive_desc backward_weights;
  std::optional<dnnl::inner_product_backward_data::primitive_desc> backward_data;
};
// Like convolution(). The output and its gradient have the source's type.
Linear linear(const dnnl::engine& engine, const Desc& source, const Dims& weights, const Desc& output, bool has_bias,
              bool data_gradient, const Attributes& attributes = {});

}  // namespace paceline::train::onednn
