// SPDX-License-Identifier: Apache-2.0
// A file with the fastest of cuDNN's plans for each convolution, so that only the first run of a model has to measure
// them. A plan is a position in the list that cuDNN's heuristics make, with the engine's number and its knobs to check
// that the list is the same. Even a wrong file can only lead to a slow plan, or to one that is not found; then all
// plans are measured again.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/backend/cuda/precision.h"

namespace paceline::train::cuda {

// The last four include neighbouring batch norms (convolution.cpp).
enum class Direction {
  forward,
  data_gradient,
  weight_gradient,
  forward_sums,
  norm_forward_sums,
  norm_weight_gradient,
  data_gradient_norm
};

// The convolution that a plan belongs to. Each geometry, GPU and version of cuDNN has its own plans.
struct PlanKey {
  Direction direction = Direction::forward;
  Precision precision = Precision::f32;
  bool winograd = true;
  std::int64_t batch = 1, channels = 1, height = 1, width = 1;  // of the input; channels as stored
  std::int64_t filters = 1, kernel = 1, stride = 1, padding = 0;

  std::int64_t out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  std::int64_t out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
};

// The GPU and the version of cuDNN (cudnnGetVersion(), the version of the library and not of its headers).
struct PlanPlace {
  std::string gpu;
  std::int64_t cudnn = 0;
  int multiprocessors = 0;  // a part of a GPU (MIG) has the name of the whole
};

// One line without tabs.
std::string text_of(const PlanKey& key, const PlanPlace& place);

struct Plan {
  std::int64_t index = 0;  // among those that cuDNN's heuristics suggest: cuDNN has knobs that its C++ layer cannot
                           // name, so that engine and knobs alone would not always make the plan again
  std::int64_t engine = 0;
  std::map<std::int64_t, std::int64_t> knobs;  // cudnn_frontend's KnobType_t → value
  double microseconds = 0;                     // when it was chosen
  bool operator==(const Plan&) const = default;
};

class PlanCache {
 public:
  // An empty name: nothing is kept. A missing file is an empty cache. A damaged or too large file is one too, and
  // trouble() describes the problem in one line.
  // patience: how long find() waits for other processes in all.
  explicit PlanCache(std::filesystem::path file, std::chrono::milliseconds patience = std::chrono::minutes(1));
  ~PlanCache() { end_turn(); }
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;

  // One process measures at a time, because ranks would measure the same plans, and disturb each other on one GPU: the
  // first that lacks a plan has the turn until end_turn() or its end. Others that lack one wait here, and then read
  // what it wrote.
  std::optional<Plan> find(const std::string& key);
  void end_turn();

  // Writes the plan at once, because a run may be killed, together with those that other processes wrote meanwhile.
  // Never throws, because a run does not need the cache; trouble() has the reason of a failure.
  void add(const std::string& key, const Plan& plan);
  const std::string& trouble() const { return trouble_; }

  // The file's content. parse() returns nothing if anything differs from the format of print().
  using Plans = std::map<std::string, Plan>;
  static std::string print(const Plans& plans);
  static std::optional<Plans> parse(std::string_view content);

 private:
  Plans read();
  void take_turn();

  std::filesystem::path file_;
  std::chrono::milliseconds patience_;
  int turn_ = -1;        // the locked file, while this process has the turn
  std::string trouble_;  // read() may set it
  Plans plans_;
};

// $XDG_CACHE_HOME/paceline/cudnn-plans.txt, else the same below ~/.cache; empty if neither variable is set.
std::filesystem::path default_plan_cache();

}  // namespace paceline::train::cuda
