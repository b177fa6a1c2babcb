// An NVTX range around each layer's forward or backward.
#pragma once

#include <string>
#include <unordered_map>

#include "trainer/core/ranges.h"
#include "trainer/nn/model.h"

namespace paceline::train {

// Used from one thread.
class LayerRanges : public LayerObserver {
 public:
  void begin(const std::string& layer, Mode, bool) override {
    push_range(Category::layer, names_.try_emplace(layer, layer).first->second);
  }
  void end() override { pop_range(); }

 private:
  std::unordered_map<std::string, RangeName> names_;
};

}  // namespace paceline::train
