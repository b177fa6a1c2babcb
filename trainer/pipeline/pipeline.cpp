// SPDX-License-Identifier: Apache-2.0
#include "trainer/pipeline/pipeline.h"

#include <cmath>
#include <stdexcept>

#include "trainer/backend/cpu/cpu_model.h"
#include "trainer/backend/cpu/kernels.h"
#include "trainer/core/random.h"

namespace paceline::train {

namespace stage_faults {
namespace {

void delay(std::chrono::nanoseconds time) {
  static const RangeName slow_layers("slow-layers");
  inject_delay(slow_layers, time);
}

}  // namespace
}  // namespace stage_faults

Pipeline::Pipeline(StageModel& model, const Network& part, const ModelOptions& model_options, StageLinks& links,
                   const std::string& schedule, std::size_t microbatches, const PassOptions& pass)
    : model_(model),
      links_(links),
      microbatches_(microbatches),
      pass_(pass),
      schedule_(stage_schedule(schedule, links.stage(), links.stages(), microbatches)),
      range_("stage " + std::to_string(links.stage())) {
  const std::size_t wanted = most_in_flight(schedule_);
  while (models() < wanted) {
    more_.push_back(make_cpu_stage(part, model_options, &model));
    more_.back()->observer = model.observer;
  }
  if (!links.first()) input_.resize(pass.batch * static_cast<std::size_t>(part.out(0).size()));
  if (microbatches > 1) earlier_ = model.memory().allocate(model.gradients().size());
}

std::size_t Pipeline::unfilled_bytes() const {
  std::size_t bytes = model_.unfilled_bytes();
  for (const auto& model : more_) bytes += model->unfilled_bytes();
  return bytes;
}

StageModel& Pipeline::model_of(std::size_t microbatch) {
  const std::size_t index = microbatch % models();
  return index == 0 ? model_ : *more_[index - 1];
}

Score Pipeline::run(const Batch& batch, std::uint64_t iteration) {
  if (batch.labels.size() != microbatches_ * pass_.batch) throw std::invalid_argument("a batch of another size");
  const Range range(Category::stage, range_, links_.stage());
  batch_ = &batch;
  iteration_ = iteration;
  score_ = {};
  nonfinite_layer_.clear();
  run_schedule(schedule_, links_, *this);
  return score_;
}

Score Pipeline::forward_images(StageModel& model, const Batch& batch, std::size_t first, std::size_t samples,
                               Mode mode) {
  if (links_.first()) return train::forward(model, batch, first, samples, mode);
  const std::span<const float> images = std::span(input_).first(samples * (input_.size() / pass_.batch));
  return model.forward(images, std::span(batch.labels).subspan(first, samples), mode);
}

void Pipeline::forward(std::size_t microbatch) {
  const Range range(Category::microbatch, microbatch);
  StageModel& model = model_of(microbatch);
  Random masks{dropping, pass_.seed, static_cast<std::uint64_t>(pass_.rank), iteration_, microbatch};
  model.seed_dropout(masks.bits());
  const Range inner(Category::forward);
  static const RangeName slow_rank("slow-rank");
  if (microbatch == 0) inject_delay(slow_rank, pass_.delay);
  stage_faults::delay(pass_.stage_delay);
  const Score score = forward_images(model, *batch_, microbatch * pass_.batch, pass_.batch, Mode::train);
  score_ += score;
  const std::span<const float> result = model.output();
  const bool finite = links_.last() ? std::isfinite(score.loss_sum) : kernels::all_finite(result.data(), result.size());
  if (!finite && nonfinite_layer_.empty()) nonfinite_layer_ = model.first_nonfinite_layer();
}

void Pipeline::backward(std::size_t microbatch) {
  const Range range(Category::microbatch, microbatch);
  const Range inner(Category::backward);
  stage_faults::delay(2 * pass_.stage_delay);
  model_of(microbatch).backward(1.0f / static_cast<float>(batch_->labels.size()));
  add_gradient(microbatch);
}

// The models share one buffer of gradients, which each backward overwrites. After the last one it holds the sum.
void Pipeline::add_gradient(std::size_t microbatch) {
  if (microbatches_ == 1) return;
  const std::span<float> gradient = model_.gradients(), earlier(earlier_.get(), gradient.size());
  Memory& memory = model_.memory();
  if (microbatch == 0) {
    memory.copy(gradient, earlier);
  } else if (microbatch + 1 < microbatches_) {
    memory.add(gradient, earlier);
  } else {
    memory.add(earlier, gradient);
  }
}

Score Pipeline::evaluate(const Batch& batch) {
  const std::size_t samples = batch.labels.size();
  const auto some = [&](std::span<float> values) {  // those of the images that there are
    return std::as_writable_bytes(values.first(values.size() / pass_.batch * samples));
  };
  if (!links_.first()) links_.exchange(std::nullopt, StageLinks::Incoming{links_.stage() - 1, some(input_)});
  const Score score = forward_images(model_, batch, 0, samples, Mode::evaluate);
  if (!links_.last()) links_.exchange(StageLinks::Outgoing{links_.stage() + 1, some(model_.output())}, std::nullopt);
  return score;
}

std::span<const std::byte> Pipeline::input_gradient(std::size_t microbatch) {
  return std::as_bytes(model_of(microbatch).input_gradient());
}

std::span<const std::byte> Pipeline::output(std::size_t microbatch) {
  return std::as_bytes(model_of(microbatch).output());
}

std::span<std::byte> Pipeline::output_gradient(std::size_t microbatch) {
  return std::as_writable_bytes(model_of(microbatch).output_gradient());
}

}  // namespace paceline::train
