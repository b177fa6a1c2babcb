// SPDX-License-Identifier: Apache-2.0
#include "trainer/updaters/gradient_pass.h"

#include <cmath>

#include "trainer/core/random.h"
#include "trainer/core/ranges.h"

namespace paceline::train {

namespace {

StoredImages stored_images(const Batch& batch, std::size_t first, std::size_t samples) {
  const std::size_t values = batch.planes.size() / batch.labels.size();
  return {std::span(batch.planes).subspan(first * values, samples * values),
          std::span(batch.cuts).subspan(first, samples), batch.normalization->mean, batch.normalization->scale};
}

std::span<const float> images_of(const Batch& batch, std::size_t first, std::size_t samples) {
  const std::size_t values = batch.images.size() / batch.labels.size();
  return std::span(batch.images).subspan(first * values, samples * values);
}

}  // namespace

Score forward(Model& model, const Batch& batch, std::size_t first, std::size_t samples, Mode mode) {
  const auto labels = std::span(batch.labels).subspan(first, samples);
  if (batch.normalization != nullptr) return model.forward_stored(stored_images(batch, first, samples), labels, mode);
  return model.forward(images_of(batch, first, samples), labels, mode);
}

void prefetch(Model& model, const Batch& batch, std::size_t samples) {
  if (batch.normalization != nullptr) return model.prefetch(stored_images(batch, 0, samples));
  model.prefetch(images_of(batch, 0, samples));
}

Slice slice_of_parameter(Model& model, std::size_t index) {
  const std::vector<Parameter>& parameters = model.parameters();
  const std::size_t first = parameters[index].offset;
  const bool last = index + 1 == parameters.size();
  return {first, (last ? model.gradients().size() : parameters[index + 1].offset) - first};
}

GradientPass::GradientPass(Model& model, const PassOptions& options) : model_(model), options_(options) {}

Score GradientPass::run(const Batch& batch, std::uint64_t iteration, const Ready& ready) {
  const std::size_t samples = options_.batch, passes = batch.labels.size() / samples;
  if (passes > 1 && earlier_.empty()) {
    const std::size_t size = model_.gradients().size();
    earlier_storage_ = model_.memory().allocate(size);
    earlier_ = {earlier_storage_.get(), size};
  }
  scale_ = 1.0f / static_cast<float>(batch.labels.size());
  several_ = passes > 1;
  Score total;
  nonfinite_layer_.clear();
  for (std::size_t pass = 0; pass < passes; ++pass) {
    Random masks{dropping, options_.seed, static_cast<std::uint64_t>(options_.rank), iteration, pass};
    model_.seed_dropout(masks.bits());
    {
      const Range range(Category::forward);
      static const RangeName slow_rank("slow-rank");
      if (pass == 0) inject_delay(slow_rank, options_.delay);
      const Score score = forward(model_, batch, pass * samples, samples, Mode::train);
      total += score;
      if (!std::isfinite(score.loss_sum) && nonfinite_layer_.empty()) {
        nonfinite_layer_ = model_.first_nonfinite_layer();
      }
    }
    const Range range(Category::backward);
    if (pass + 1 == passes) {
      last_backward(ready);
      break;
    }
    model_.backward(scale_);
    if (pass == 0)
      model_.memory().copy(model_.gradients(), earlier_);
    else
      model_.memory().add(model_.gradients(), earlier_);
  }
  return total;
}

void GradientPass::again(const Ready& ready) {
  const Range range(Category::backward);
  last_backward(ready);
}

void GradientPass::last_backward(const Ready& ready) {
  if (!ready) {
    model_.backward(scale_);
    if (several_) model_.memory().add(std::span<const float>(earlier_), model_.gradients());
    return;
  }
  model_.gradients_ready = [&](std::size_t first, std::size_t count) {
    if (several_) add_earlier_passes(first, count);
    ready(first, count);
  };
  model_.backward(scale_);
  model_.gradients_ready = nullptr;
}

void GradientPass::add_earlier_passes(std::size_t first, std::size_t count) {
  const Slice last = slice_of_parameter(model_, first + count - 1);
  const std::size_t begin = slice_of_parameter(model_, first).first, size = last.first + last.count - begin;
  model_.memory().add(std::span<const float>(earlier_).subspan(begin, size), model_.gradients().subspan(begin, size));
}

}  // namespace paceline::train
