// SPDX-License-Identifier: Apache-2.0
// A model that only stores parameters, for tests of state.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "trainer/nn/model.h"

namespace paceline::train {

// Two parameters, the first of 3 elements padded to 4 and stored in reverse, as a blocked layout might.
class ReversedModel : public Model {
 public:
  Score forward(std::span<const float>, std::span<const std::int32_t>, Mode) override { return {}; }
  void backward(float) override {}
  std::span<float> weights() override { return weights_; }
  std::span<float> gradients() override { return gradients_; }
  void set_gradients(std::span<float>) override {}
  std::string first_nonfinite_layer() const override { return {}; }
  const std::vector<Parameter>& parameters() const override { return parameters_; }
  std::span<float> statistics() override { return statistics_; }
  std::vector<float> to_plain(const Parameter& parameter, std::span<const float> flat) const override {
    const auto from = flat.subspan(parameter.offset, 3);
    return {from.rbegin(), from.rend()};
  }
  void from_plain(const Parameter& parameter, std::span<const float> plain, std::span<float> flat) const override {
    std::copy(plain.rbegin(), plain.rend(), flat.begin() + static_cast<std::ptrdiff_t>(parameter.offset));
  }
  double train_flops_per_image() const override { return 0; }

 private:
  std::vector<Parameter> parameters_ = {{"a.weight", 0, 4, {3, 1}, false}, {"b.weight", 4, 3, {3}, true}};
  std::vector<float> weights_ = std::vector<float>(7), gradients_ = std::vector<float>(7),
                     statistics_ = std::vector<float>(2);
};

}  // namespace paceline::train
