#include "trainer/loop/gradient_pass.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "trainer/data/random.h"
#include "trainer/ranges.h"

namespace paceline::train {

Extent extent_of(Model& model, std::size_t index) {
  const std::vector<Parameter>& parameters = model.parameters();
  const bool last = index + 1 == parameters.size();
  return {parameters[index].offset, last ? model.gradients().size() : parameters[index + 1].offset};
}

GradientPass::GradientPass(Model& model, const PassOptions& options) : model_(model), options_(options) {}

Score GradientPass::run(const Batch& batch, std::uint64_t iteration, const Ready& ready) {
  const std::size_t samples = options_.batch, passes = batch.labels.size() / samples;
  const std::size_t values = batch.images.size() / passes;
  if (passes > 1) earlier_.resize(model_.gradients().size());
  Score total;
  nonfinite_layer_.clear();
  for (std::size_t pass = 0; pass < passes; ++pass) {
    Random masks{dropping, options_.seed, static_cast<std::uint64_t>(options_.rank), iteration, pass};
    model_.seed_dropout(masks.bits());
    {
      const Range range(Category::forward);
      static const RangeName slow_rank("slow-rank");
      if (pass == 0) suffer(slow_rank, options_.delay);
      const Score score = model_.forward(std::span(batch.images).subspan(pass * values, values),
                                         std::span(batch.labels).subspan(pass * samples, samples), Mode::train);
      total.loss_sum += score.loss_sum;
      total.correct += score.correct;
      total.samples += score.samples;
      if (!std::isfinite(score.loss_sum) && nonfinite_layer_.empty()) {
        nonfinite_layer_ = model_.first_nonfinite_layer();
      }
    }
    const bool last = pass + 1 == passes;
    model_.gradients_ready = nullptr;
    if (last && (passes > 1 || ready)) {
      model_.gradients_ready = [&](std::size_t first, std::size_t count) {
        if (passes > 1) add_earlier_passes(first, count);
        if (ready) ready(first, count);
      };
    }
    const Range range(Category::backward);
    model_.backward(1.0f / static_cast<float>(batch.labels.size()));
    if (last) break;
    const std::span<const float> gradients = model_.gradients();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      earlier_[i] = pass == 0 ? gradients[i] : earlier_[i] + gradients[i];
    }
  }
  model_.gradients_ready = nullptr;
  return total;
}

void GradientPass::add_earlier_passes(std::size_t first, std::size_t count) {
  const std::size_t begin = extent_of(model_, first).first, end = extent_of(model_, first + count - 1).end;
  const std::span<float> gradients = model_.gradients();
  for (std::size_t i = begin; i < end; ++i) gradients[i] += earlier_[i];
}

}  // namespace paceline::train
