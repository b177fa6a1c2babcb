// The primitive descriptors that this backend needs, written once for oneDNN 2 (operation descriptors) and once for
// oneDNN 3 (none). No other file knows which version it is built with.
#pragma once

#include <dnnl_version.h>

#include <dnnl.hpp>
#include <optional>
#include <string>

namespace paceline::train::onednn {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Type = dnnl::memory::data_type;
using Attributes = dnnl::primitive_attr;  // of every primitive of a layer; training has the default ones

// A description that leaves the layout to the primitive.
inline Desc any_layout(const Dims& dims, Type type = Type::f32) { return {dims, type, dnnl::memory::format_tag::any}; }
Desc plain_layout(const Dims& dims, Type type = Type::f32);  // row-major
Dims dims(const Desc& desc);
Type type(const Desc& desc);
bool same_layout(const Desc& a, const Desc& b);
std::size_t bytes(const Desc& desc);

// Whether convolutions choose layouts of 8 channels in a block, as with AVX2, rather than 16, as with AVX-512.
bool blocks_of_8();

// Of the library that runs: "3.2.0", and the best of the processor's instructions that it uses: "AVX2".
std::string version();
std::string instructions();

// Why activations cannot be bf16 here; empty where they can.
std::string why_no_bf16();

struct Window {
  Dims kernel, stride, padding;  // two extents each; padding is the same on both sides
};

struct Convolution {
  dnnl::convolution_forward::primitive_desc forward;
  dnnl::convolution_backward_weights::primitive_desc backward_weights;
  std::optional<dnnl::convolution_backward_data::primitive_desc> backward_data;
};
// source: its layout may be any; its type is that of the weights and of the output. Biases and the gradients of weights
// and biases are fp32. The layouts of forward hold for the backward primitives too, except that the weights of
// backward_data may be laid out differently, and everything of backward_weights. has_bias: of as many elements as
// output has channels. winograd: by Winograd's algorithm wherever oneDNN has it and it is the faster one.
Convolution convolution(const dnnl::engine& engine, const Desc& source, const Dims& weights, bool has_bias,
                        const Dims& output, const Window& window, bool data_gradient, bool winograd,
                        const Attributes& attributes = {});

struct BatchNorm {
  dnnl::batch_normalization_forward::primitive_desc train, evaluate;
  dnnl::batch_normalization_backward::primitive_desc backward;
};
// frozen: train normalises with given statistics too.
BatchNorm batch_norm(const dnnl::engine& engine, const Desc& data, float epsilon, bool relu, bool frozen,
                     const Attributes& attributes = {});

inline constexpr bool batch_norm_backward_takes_shift = DNNL_VERSION_MAJOR < 3;  // though it does not depend on it

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
// As for convolution(); output is of source's type, and so is its gradient.
Linear linear(const dnnl::engine& engine, const Desc& source, const Dims& weights, const Desc& output, bool has_bias,
              bool data_gradient, const Attributes& attributes = {});

}  // namespace paceline::train::onednn
