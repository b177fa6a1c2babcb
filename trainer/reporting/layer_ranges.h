// SPDX-License-Identifier: Apache-2.0
// An NVTX range around each layer's forward or backward. The payload of a backward is the number of bytes of the
// layer's gradient in fp32, which is ready when the range ends.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "trainer/core/ranges.h"
#include "trainer/nn/model.h"

namespace paceline::train {

// Used from one thread.
class LayerRanges : public LayerObserver {
 public:
  // Until then payloads are absent.
  void know(const std::vector<Parameter>& parameters) {
    for (const Parameter& of : parameters) {
      gradient_bytes_[of.name.substr(0, of.name.rfind('.'))] += of.size * sizeof(float);
    }
  }

  void begin(const std::string& layer, Mode, bool backward) override {
    const RangeName& name = names_.try_emplace(layer, layer).first->second;
    const auto gradient = backward ? gradient_bytes_.find(layer) : gradient_bytes_.end();
    if (gradient == gradient_bytes_.end()) return push_range(Category::layer, name);
    push_range(Category::layer, name, gradient->second);
  }
  void end() override { pop_range(); }

 private:
  std::unordered_map<std::string, RangeName> names_;
  std::unordered_map<std::string, std::uint64_t> gradient_bytes_;
};

}  // namespace paceline::train
