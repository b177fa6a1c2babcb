// SPDX-License-Identifier: Apache-2.0
// Every operation on a GPU against the float64 reference, in every type.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "tests/gpu/copies.h"
#include "tests/gpu/on_gpu.h"
#include "tests/unit/trainer/backend/operations.h"
#include "trainer/backend/cuda/cuda_network.h"

namespace paceline::train::cuda {
namespace {

int mantissa_bits(Precision precision) {
  return precision == Precision::f32 ? 24 : precision == Precision::bf16 ? 8 : 11;
}

// To what the type can hold, so that both sides compute with the same numbers.
Values rounded(Values values, Precision precision) {
  for (double& value : values) {
    int exponent = 0;
    const double mantissa = std::frexp(value, &exponent);
    value =
        std::ldexp(std::nearbyint(std::ldexp(mantissa, mantissa_bits(precision))), exponent - mantissa_bits(precision));
  }
  return values;
}

// Rounding of the result, and in fp32 of the sums.
double bound_of(const Operation& operation, Precision precision) {
  if (operation.bound == 0 && mantissa_bits(precision) == 24) return 0;
  const double fp32 = std::max(2e-6, 2 * operation.bound);
  if (storage_of(precision) == Storage::f32) return fp32;
  return precision == Precision::bf16 ? 4e-3 : 5e-4;
}

// A network of one layer, and what goes in and out of it as plain float64.
class OneLayer {
 public:
  OneLayer(const Operation& operation, Precision precision, const Device& device)
      : plans_(""), network_(build(operation), settings(operation, precision), device, stream_, plans_) {}

  CudaNetwork& network() { return network_; }
  const Layer& layer() const { return network_.layers()[1]; }
  void run() {
    network_.forward(Mode::train, nullptr);
    network_.backward(nullptr, {});
    stream_.synchronize();
  }

  void write(const Values& values, const reference::Tensor& shape, void* to, std::int64_t stored_channels) {
    std::vector<float> plain(values.begin(), values.end());
    const Buffer planes = device_buffer((plain.size() + 4) * sizeof(float));
    PACELINE_CHECK_CUDA(
        cudaMemcpyAsync(planes.data(), plain.data(), plain.size() * sizeof(float), cudaMemcpyHostToDevice, stream_));
    const std::int64_t pixels = shape.shape.height * shape.shape.width;
    if (pixels == 1 && stored_channels == shape.shape.channels) {
      kernels::narrow(stream_, network_.storage(), planes.data<float>(), to, plain.size());
    } else {
      kernels::planes_to_rows(stream_, network_.storage(), planes.data<float>(), to, shape.samples,
                              shape.shape.channels, stored_channels, pixels);
    }
    stream_.synchronize();
  }

  std::vector<float> read(const void* from, Storage storage, const Shape& shape, std::int64_t samples,
                          std::int64_t stored_channels) {
    const std::int64_t pixels = shape.height * shape.width;
    const auto count = static_cast<std::size_t>(samples * pixels * stored_channels);
    const Buffer wide = device_buffer((count + 4) * sizeof(float));
    kernels::take_gradient(stream_, storage, from, wide.data<float>(), count, network_.step());
    std::vector<float> rows(count);
    PACELINE_CHECK_CUDA(
        cudaMemcpyAsync(rows.data(), wide.data(), count * sizeof(float), cudaMemcpyDeviceToHost, stream_));
    stream_.synchronize();
    std::vector<float> plain;
    for (std::int64_t n = 0; n < samples; ++n) {
      for (std::int64_t c = 0; c < shape.channels; ++c) {
        for (std::int64_t p = 0; p < pixels; ++p) {
          plain.push_back(rows[static_cast<std::size_t>((n * pixels + p) * stored_channels + c)]);
        }
      }
    }
    return plain;
  }

 private:
  static Network build(const Operation& operation) {
    Network network(operation.in);
    operation.append(network);
    return network;
  }
  static NetworkSettings settings(const Operation& operation, Precision precision) {
    NetworkSettings result;
    result.precision = precision;
    result.batch = operation.batch;
    result.winograd = operation.winograd;
    result.freeze_batch_norm = operation.frozen;
    result.gradient_of_image = true;
    return result;
  }

  Stream stream_{"test"};
  PlanCache plans_;
  CudaNetwork network_;
};

void compare_with_reference(const Operation& operation, Precision precision, const Device& device) {
  OneLayer one(operation, precision, device);
  CudaNetwork& network = one.network();
  const Layer& layer = one.layer();
  const double bound = bound_of(operation, precision);
  reference::Tensor x(operation.batch, layer.in), dy(operation.batch, layer.out);
  x.values = rounded(random_values(x.values.size(), 0.2, 1), precision);
  dy.values = rounded(random_values(dy.values.size(), 0, 1), precision);
  std::vector<Values> weights;
  for (const CudaParameter& parameter : network.parameters()) {
    const bool filter = parameter.parameter.shape.size() > 1;  // the others stay in fp32
    weights.push_back(rounded(random_values(parameter.layout.published(), parameter.parameter.batch_norm ? 1 : 0, 0.5),
                              filter ? precision : Precision::f32));
    const std::vector<float> plain(weights.back().begin(), weights.back().end());
    std::vector<float> stored(parameter.layout.stored());
    from_published(parameter.layout, plain, stored);
    put(stored, {network.flat().weights + parameter.parameter.offset, stored.size()});
  }
  reference::Moments moments = reference::moments(x);
  if (operation.frozen) {
    const auto channels = static_cast<std::size_t>(layer.in.channels);
    moments = {random_values(channels, 0, 0.3), random_values(channels, 2, 0.2)};
    float* const statistics = network.flat().statistics;
    put(std::vector<float>(moments.mean.begin(), moments.mean.end()), {statistics, channels});
    put(std::vector<float>(moments.variance.begin(), moments.variance.end()),
        {statistics + to_multiple(layer.in.channels, 16), channels});
  }
  const std::int64_t stored = to_multiple(layer.in.channels, channel_group);
  one.write(x.values, x, network.tensor(0).value, stored);
  one.write(dy.values, dy, network.output_gradient(), layer.out.channels);
  one.run();

  const Expected expected = expected_of(layer, x, dy, weights, moments, operation.frozen);
  cuda::Tensor& y = network.tensor(1);
  EXPECT_LE(
      relative_error(one.read(y.value, y.storage, layer.out, operation.batch, layer.out.channels), expected.y.values),
      bound)
      << "result";
  ASSERT_FALSE(network.tensor(0).gradients.empty());
  for (const void* gradient : network.tensor(0).gradients) {
    EXPECT_LE(
        relative_error(one.read(gradient, network.storage(), layer.in, operation.batch, stored), expected.dx.values),
        bound)
        << "gradient of the input";
  }
  for (std::size_t i = 0; i < network.parameters().size(); ++i) {
    const CudaParameter& parameter = network.parameters()[i];
    const std::span<const float> stored(network.flat().gradients + parameter.parameter.offset,
                                        parameter.layout.stored());
    const std::vector<float> gradient = to_published(parameter.layout, on_host(stored));
    EXPECT_LE(relative_error(gradient, expected.gradients[i]), bound) << "gradient of " << parameter.parameter.name;
  }
}

class CudaOperations : public OnGpu, public testing::WithParamInterface<const char*> {};

TEST_P(CudaOperations, AgreeWithTheReference) {
  for (const Operation& operation : operations) {
    SCOPED_TRACE(operation.name);
    compare_with_reference(operation, precision_of(GetParam()), device_);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaOperations, testing::Values("f32", "tf32", "bf16", "f16"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace paceline::train::cuda
