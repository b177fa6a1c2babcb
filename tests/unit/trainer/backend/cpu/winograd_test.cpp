// SPDX-License-Identifier: Apache-2.0
// Winograd's convolution alone against float64, in shapes with full and partial tiles, groups and chunks.
#include "trainer/backend/cpu/winograd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/unit/trainer/backend/cpu/one_layer.h"

namespace paceline::train {
namespace {

// ‖fast − reference‖₂ ÷ ‖reference‖₂, as in the table of operations; of images that are rounded to bf16
constexpr double bound = 5e-6, bf16_bound = 0x1p-8;

using Floats = std::vector<float>;

// The order of nChw8c and OIhw8i8o, or of nChw16c and OIhw16i16o: blocked[i] = plain[order[i]].
std::vector<std::size_t> image_order(std::size_t size, std::size_t images, std::size_t channels, std::size_t pixels) {
  std::vector<std::size_t> order;
  for (std::size_t n = 0; n < images; ++n) {
    for (std::size_t block = 0; block < channels; block += size) {
      for (std::size_t p = 0; p < pixels; ++p) {
        for (std::size_t c = 0; c < size; ++c) order.push_back((n * channels + block + c) * pixels + p);
      }
    }
  }
  return order;
}

std::vector<std::size_t> weights_order(std::size_t size, std::size_t out, std::size_t in) {
  std::vector<std::size_t> order;
  for (std::size_t o = 0; o < out; o += size) {
    for (std::size_t i = 0; i < in; i += size) {
      for (std::size_t tap = 0; tap < 9; ++tap) {
        for (std::size_t e = 0; e < size * size; ++e) order.push_back(((o + e % size) * in + i + e / size) * 9 + tap);
      }
    }
  }
  return order;
}

Floats blocked(const Values& plain, const std::vector<std::size_t>& order) {
  Floats result;
  for (const std::size_t from : order) result.push_back(static_cast<float>(plain[from]));
  return result;
}

Floats plain(const Floats& blocked, const std::vector<std::size_t>& order) {
  Floats result(blocked.size());
  for (std::size_t i = 0; i < order.size(); ++i) result[order[i]] = blocked[i];
  return result;
}

// An image in the type that the code takes, and back.
std::vector<Bf16> rounded(const Floats& values) {
  std::vector<Bf16> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) store(values[i], result[i]);
  return result;
}

Floats widened(const std::vector<Bf16>& values) {
  Floats result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) result[i] = load(values[i]);
  return result;
}

struct Results {
  Floats output, source_gradient, weights_gradient, bias_gradient;
  bool operator==(const Results&) const = default;
};

Results run(const winograd::Code& code, const winograd::Shape& s, const Floats& source, const Floats& weights,
            const Floats& bias, const Floats& output_gradient, int threads) {
  // NaN where nothing is written, so that a result that depends on the memory's earlier content is noticed.
  Floats work(code.work_size(s, threads), NAN);
  Results r{Floats(output_gradient.size(), NAN), Floats(source.size(), NAN), Floats(weights.size(), NAN),
            Floats(bias.size(), NAN)};
  if (code.bf16) {
    const std::vector<Bf16> x = rounded(source), dy = rounded(output_gradient);
    std::vector<Bf16> y = rounded(r.output), dx = rounded(r.source_gradient);
    code.forward(s, x.data(), weights.data(), bias.data(), y.data(), work.data(), threads);
    code.backward_data(s, dy.data(), weights.data(), dx.data(), work.data(), threads);
    code.backward_weights(s, x.data(), dy.data(), r.weights_gradient.data(), r.bias_gradient.data(), work.data(),
                          threads);
    r.output = widened(y);
    r.source_gradient = widened(dx);
    return r;
  }
  code.forward(s, source.data(), weights.data(), bias.data(), r.output.data(), work.data(), threads);
  code.backward_data(s, output_gradient.data(), weights.data(), r.source_gradient.data(), work.data(), threads);
  code.backward_weights(s, source.data(), output_gradient.data(), r.weights_gradient.data(), r.bias_gradient.data(),
                        work.data(), threads);
  return r;
}

class Winograd : public testing::TestWithParam<std::tuple<const winograd::Code*, winograd::Shape>> {};

TEST_P(Winograd, AgreesWithTheReferenceOnAnyNumberOfThreads) {
  const auto& [code, s] = GetParam();
  if (!code->runs_here()) GTEST_SKIP() << "this processor does not have the instructions of " << code->name;
  const auto extent = [](std::size_t value) { return static_cast<std::int64_t>(value); };
  Network network(Shape{extent(s.in), extent(s.height), extent(s.width)});
  network.convolution("l", 0, extent(s.out), 3, 1, true);
  const Layer& layer = network.layers().back();
  Tensor x(extent(s.batch), layer.in), dy(extent(s.batch), layer.out);
  x.values = random_values(x.values.size(), 0.2, 1);
  dy.values = random_values(dy.values.size(), 0, 1);
  if (code->bf16) {  // both sides compute with the same numbers
    for (Values* const image : {&x.values, &dy.values}) {
      for (double& value : *image) value = float_from_bfloat16(bfloat16_from_float(static_cast<float>(value)));
    }
  }
  const std::vector<Values> weights{random_values(s.out * s.in * 9, 0, 0.5), random_values(s.out, 0, 0.5)};

  const std::size_t pixels = s.height * s.width;
  const auto of_source = image_order(code->block, s.batch, s.in, pixels),
             of_output = image_order(code->block, s.batch, s.out, pixels);
  const auto of_weights = weights_order(code->block, s.out, s.in);
  const Floats source = blocked(x.values, of_source), gradient = blocked(dy.values, of_output);
  const Floats w = blocked(weights[0], of_weights), bias(weights[1].begin(), weights[1].end());
  const Results one = run(*code, s, source, w, bias, gradient, 1);

  const Expected expected = expected_of(layer, x, dy, weights, {}, false);
  const double of_images = code->bf16 ? bf16_bound : bound;
  EXPECT_LE(relative_error(plain(one.output, of_output), expected.y.values), of_images);
  EXPECT_LE(relative_error(plain(one.source_gradient, of_source), expected.dx.values), of_images);
  EXPECT_LE(relative_error(plain(one.weights_gradient, of_weights), expected.gradients[0]), bound);
  EXPECT_LE(relative_error(one.bias_gradient, expected.gradients[1]), bound);

  for (const int threads : {2, 3, 11}) EXPECT_TRUE(run(*code, s, source, w, bias, gradient, threads) == one) << threads;

  winograd::Shape last = s;
  const std::size_t batch = s.batch;
  last.batch = 1;
  const auto image = [&](const Floats& all) { return Floats(all.end() - extent(all.size() / batch), all.end()); };
  const Results alone = run(*code, last, image(source), w, bias, image(gradient), 1);
  EXPECT_TRUE(alone.output == image(one.output)) << "an image's result depends on its batch";
  EXPECT_TRUE(alone.source_gradient == image(one.source_gradient));
}

// A group has at most 48 tiles and a chunk has 96 where this matters. 32 channels have fewer pieces of 16 or 32 than
// there are threads with 3 threads; of 48 channels, the second piece of 32 has one block of 16. With fewer tiles than
// output channels the work is divided by channels: in several shapes, of which the one with 100 images has two chunks.
// The last shape's weights' gradient has two chunks and more products than are kept at once.
INSTANTIATE_TEST_SUITE_P(
    , Winograd,
    testing::Combine(testing::ValuesIn(winograd::codes().begin(), winograd::codes().end()),
                     testing::Values(winograd::Shape{1, 4, 4, 32, 32}, winograd::Shape{2, 5, 7, 32, 48},
                                     winograd::Shape{3, 9, 14, 48, 32}, winograd::Shape{8, 16, 15, 32, 32},
                                     winograd::Shape{5, 1, 3, 16, 16}, winograd::Shape{100, 1, 2, 32, 160},
                                     winograd::Shape{150, 1, 1, 512, 144})),
    [](const auto& info) {
      const winograd::Code* const code = std::get<0>(info.param);
      const winograd::Shape& s = std::get<1>(info.param);
      const std::string name(code->name);
      return name.substr(name.find(':') + 1) + "_" + std::to_string(code->block) + "_" + std::to_string(s.batch) + "x" +
             std::to_string(s.height) + "x" + std::to_string(s.width) + "of" + std::to_string(s.in) + "to" +
             std::to_string(s.out);
    });

Values ramp(std::size_t count) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<double>(i));
  return values;
}

constexpr std::size_t images = 4, outputs = 64;

// The output of a network's convolution layer on ramps.
Floats output_of_layer(Shape in, bool by_winograd) {
  Operation operation{"", in, [](Network& n) { return n.convolution("l", 0, outputs, 3, 1, false); }, bound};
  operation.winograd = by_winograd;
  Alone alone(operation);
  CpuBuild& build = alone.build();
  alone.write(ramp(images * static_cast<std::size_t>(in.size())), build.activations[0].value);
  alone.write(ramp(outputs * 9 * static_cast<std::size_t>(in.channels)), build.parameters[0].weights);
  alone.fast().forward(Mode::train);
  return alone.read(build.activations[1].value);
}

// The output of Winograd's algorithm itself on the same ramps.
Floats output_of_winograd(const winograd::Code& code, Shape in) {
  const auto size = [](std::int64_t extent) { return static_cast<std::size_t>(extent); };
  const winograd::Shape s{images, size(in.height), size(in.width), size(in.channels), outputs};
  const std::size_t pixels = s.height * s.width;
  const auto of_output = image_order(code.block, s.batch, s.out, pixels);
  const Floats source = blocked(ramp(s.batch * s.in * pixels), image_order(code.block, s.batch, s.in, pixels));
  const Floats weights = blocked(ramp(s.out * 9 * s.in), weights_order(code.block, s.out, s.in));
  Floats output(of_output.size()), work(code.work_size(s, 1));
  code.forward(s, source.data(), weights.data(), nullptr, output.data(), work.data(), 1);
  return plain(output, of_output);
}

// Both algorithms give the same result up to rounding, so the comparison is bit by bit: a layer with Winograd's
// algorithm must give its bits, and one without it other bits.
TEST(WinogradLayer, IsUsedWhereOneDnnHasNoWinograd) {
  const winograd::Code* const code = winograd_code();
  if (code == nullptr) GTEST_SKIP() << "this processor does not use this code";
  for (const Shape in : {Shape{64, 8, 8}, Shape{64, 4, 4}}) {
    const Floats expected = output_of_winograd(*code, in);
    EXPECT_TRUE(output_of_layer(in, true) == expected) << in.height;
    EXPECT_FALSE(output_of_layer(in, false) == expected) << in.height;
  }
  for (const Shape in : {Shape{64, 2, 2}, Shape{16, 8, 8}}) {  // most of a tile would be wasted; too few channels
    EXPECT_TRUE(output_of_layer(in, true) == output_of_layer(in, false)) << in.channels;
    if (in.channels == 64) {
      EXPECT_FALSE(output_of_layer(in, true) == output_of_winograd(*code, in));
    }
  }
}

}  // namespace
}  // namespace paceline::train
