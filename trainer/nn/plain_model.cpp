// SPDX-License-Identifier: Apache-2.0
#include "trainer/nn/plain_model.h"

#include <algorithm>
#include <stdexcept>

#include "trainer/nn/init.h"

namespace paceline::train {
namespace plain_model {
namespace {

constexpr std::size_t line = 16;  // numbers

std::size_t round_up(std::size_t count) { return (count + line - 1) / line * line; }

class PlainModel final : public Model {
 public:
  PlainModel(const Network& network, std::uint64_t seed) : train_flops_(network.train_flops()) {
    for (const Layer& layer : network.layers()) {
      for (const ParameterShape& shape : layer.parameters()) {
        const std::vector<float> values = initial_values(layer, shape, seed);
        parameters_.push_back({.name = shape.name,
                               .offset = weights_.size(),
                               .size = values.size(),
                               .shape = shape.shape,
                               .batch_norm = layer.kind == LayerKind::batch_norm});
        weights_.insert(weights_.end(), values.begin(), values.end());
        weights_.resize(round_up(weights_.size()));
      }
      if (layer.kind != LayerKind::batch_norm) continue;
      const auto channels = static_cast<std::size_t>(layer.out.channels);
      statistics_.resize(statistics_.size() + round_up(channels));
      statistics_.resize(statistics_.size() + channels, 1.0f);
      statistics_.resize(round_up(statistics_.size()));
    }
    statistics_.resize(std::max(statistics_.size(), line));  // as long as a backend's
  }

  Score forward(std::span<const float>, std::span<const std::int32_t>, Mode) override { throw cannot_compute(); }
  void backward(float) override { throw cannot_compute(); }
  std::span<float> weights() override { return weights_; }
  std::span<float> gradients() override { return {}; }
  void set_gradients(std::span<float>) override {}
  const std::vector<Parameter>& parameters() const override { return parameters_; }
  std::span<float> statistics() override { return statistics_; }
  std::string first_nonfinite_layer() const override { return {}; }
  double train_flops_per_image() const override { return train_flops_; }

  std::vector<float> to_plain(const Parameter& parameter, std::span<const float> flat) const override {
    const std::span<const float> values = flat.subspan(parameter.offset, parameter.size);
    return {values.begin(), values.end()};
  }
  void from_plain(const Parameter& parameter, std::span<const float> plain, std::span<float> flat) const override {
    if (plain.size() != parameter.size) throw std::invalid_argument(parameter.name + " has another size");
    std::ranges::copy(plain, flat.begin() + static_cast<std::ptrdiff_t>(parameter.offset));
  }

 private:
  static std::logic_error cannot_compute() { return std::logic_error("a plain model does not compute"); }

  const double train_flops_;
  std::vector<Parameter> parameters_;
  std::vector<float> weights_, statistics_;
};

}  // namespace
}  // namespace plain_model

std::unique_ptr<Model> make_plain_model(const Network& network, std::uint64_t seed) {
  return std::make_unique<plain_model::PlainModel>(network, seed);
}

std::size_t statistics_of(const Network& network) {
  std::size_t length = 0;
  for (const Layer& layer : network.layers()) {
    if (layer.kind == LayerKind::batch_norm)
      length += 2 * plain_model::round_up(static_cast<std::size_t>(layer.out.channels));
  }
  return length;
}

}  // namespace paceline::train
