// Which of cuDNN's ways to compute a convolution was the fastest here, kept in a file, so that only the first run of a
// model has to try them. A plan is a position in the list that cuDNN's heuristics make, with the engine's number and
// its knobs to see that the list is the same: whatever stands in the file, the worst is a slow plan, or one that is not
// found, and then all are tried again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/backend/cuda/precision.h"
#include "trainer/nn/network.h"

namespace paceline::train::cuda {

// The last four: with the batch norms beside it (convolution.cpp).
enum class Direction {
  forward,
  data_gradient,
  weight_gradient,
  forward_sums,
  norm_forward_sums,
  norm_weight_gradient,
  data_gradient_norm
};

// What a plan is for. Two geometries that differ anywhere have plans of their own, as do two GPUs and two cuDNNs.
struct PlanKey {
  Direction direction = Direction::forward;
  Precision precision = Precision::f32;
  bool winograd = true;
  std::int64_t batch = 1, channels = 1, height = 1, width = 1;  // of the input; channels as stored
  std::int64_t filters = 1, kernel = 1, stride = 1, padding = 0;

  std::int64_t out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  std::int64_t out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
};

// On which GPU and with which cuDNN (cudnnGetVersion(), which the library has, not its headers).
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
  // Empty: nothing is kept. A file that is missing is an empty cache; one that is damaged or too large is one too, and
  // trouble() says so in one line.
  explicit PlanCache(std::filesystem::path file);

  std::optional<Plan> find(const std::string& key) const;
  void add(const std::string& key, const Plan& plan);

  // Writes what was added, together with what other processes wrote meanwhile. Never throws: a cache that cannot be
  // written is no reason to stop; trouble() then says why.
  void save();
  const std::string& trouble() const { return trouble_; }

  // The file's content. parse() returns nothing where anything in it is not as print() writes it.
  using Plans = std::map<std::string, Plan>;
  static std::string print(const Plans& plans);
  static std::optional<Plans> parse(std::string_view content);

 private:
  Plans read();

  std::filesystem::path file_;
  std::string trouble_;  // read() may set it
  Plans plans_, added_;
};

// $XDG_CACHE_HOME/paceline/cudnn-plans.txt, else the same below ~/.cache; empty where neither variable is set.
std::filesystem::path default_plan_cache();

}  // namespace paceline::train::cuda
