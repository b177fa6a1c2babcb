// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/stage_costs.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "trainer/backend/cpu/cpu_model.h"
#include "trainer/guard/agreement.h"

namespace paceline::train {
namespace stage_costs {
namespace {

// Adds up the time of all layers, without the copies at a stage's ends.
class Stopwatch final : public LayerObserver {
 public:
  void begin(const std::string&, Mode, bool) override { start_ = std::chrono::steady_clock::now(); }
  void end() override { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  double take() { return std::exchange(seconds_, 0.0); }

 private:
  std::chrono::steady_clock::time_point start_;
  double seconds_ = 0;
};

// The least of a few passes, because disturbances only add time.
double seconds_of(const Network& part, const ModelOptions& options) {
  constexpr int passes = 4;
  const auto stage = make_cpu_stage(part, options);
  Stopwatch watch;
  stage->observer = &watch;
  const auto batch = static_cast<std::size_t>(options.batch_size);
  std::vector<float> images(batch * static_cast<std::size_t>(part.out(0).size()));
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i % 17) / 17.0f;
  const std::vector<std::int32_t> labels(batch, 0);
  double least = std::numeric_limits<double>::infinity();
  for (int pass = 0; pass < passes; ++pass) {
    stage->forward(images, labels, Mode::train);
    std::ranges::fill(stage->output_gradient(), 1e-3f);
    stage->backward(1.0f / static_cast<float>(batch));
    least = std::min(least, watch.take());
  }
  return least;
}

}  // namespace
}  // namespace stage_costs

std::vector<double> measured_costs(Collectives& ranks, const Network& network, const std::vector<LayerRun>& runs,
                                   const ModelOptions& options) {
  ModelOptions alone = options;
  alone.batch_norm.sum_over_ranks = nullptr;  // each rank measures other layers
  std::vector<double> costs(runs.size(), 0.0);
  const auto own = static_cast<std::size_t>(ranks.rank()), count = static_cast<std::size_t>(ranks.size());
  together(ranks, [&] {
    for (std::size_t i = own; i < runs.size(); i += count) {
      costs[i] = stage_costs::seconds_of(network.part(runs[i].first, runs[i].last), alone);
    }
  });
  ranks.allreduce_sum(costs);  // one rank's number and zeros
  return costs;
}

}  // namespace paceline::train
