// Stochastic gradient descent with momentum, weight decay and optionally Nesterov's look-ahead, in PyTorch's form:
//   g ← gradient + weight_decay × w,  v ← momentum × v + g,  w ← w − rate × (nesterov ? g + momentum × v : v)
// The rate stays outside of v, so a change of it needs no momentum correction (Goyal et al., arXiv 1706.02677, 3).
#pragma once

#include <span>
#include <vector>

namespace paceline::train {

struct SgdOptions {
  float momentum = 0.9f;
  float weight_decay = 0;
  bool nesterov = false;
};

class Sgd {
 public:
  Sgd(std::size_t parameters, const SgdOptions& options) : options_(options), velocity_(parameters, 0.0f) {}

  // All three arrays have as many elements; one pass over them on all OpenMP threads.
  void step(std::span<float> weights, std::span<const float> gradients, float rate);

  std::span<float> velocity() { return velocity_; }  // for checkpoints
  const SgdOptions& options() const { return options_; }

 private:
  SgdOptions options_;
  std::vector<float> velocity_;
};

}  // namespace paceline::train
