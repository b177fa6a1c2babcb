// What profilers are told: NVTX ranges and marks of the domain `paceline.trainer`. With no tool attached each call
// costs 1 to 2 ns. Names are registered strings, so that a tool need not copy them.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include <nvtx3/nvToolsExt.h>

#include "trainer/nn/model.h"

namespace paceline::train {

// The number is the NVTX category; its name is the enumerator's, and that of the range too unless a layer's.
enum class Category : std::uint32_t {
  iteration = 1,
  preprocess,
  forward,
  backward,
  allreduce,
  optimizer,
  evaluate,
  checkpoint,
  startup,
  layer,
  run,
  accuracy
};

// A range on the calling thread from construction to destruction, named like its category.
class Range {
 public:
  explicit Range(Category category);
  Range(Category category, std::uint64_t payload);  // iteration: its number; allreduce: bytes
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range();
};

// What this run is, once, as a JSON object; and the test accuracy (0 to 1) after each evaluation.
void mark_run(const std::string& json);
void mark_accuracy(double accuracy);

// Names the calling thread in the profile.
void name_this_thread(const char* name);

// A range around each layer's forward or backward. Used from one thread.
class LayerRanges : public LayerObserver {
 public:
  void begin(const std::string& layer, Mode mode, bool backward) override;
  void end() override;

 private:
  std::unordered_map<std::string, nvtxStringHandle_t> names_;
};

}  // namespace paceline::train
