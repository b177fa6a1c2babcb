// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/checkpointing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "trainer/checkpoint/sharded_state.h"
#include "trainer/guard/agreement.h"
#include "trainer/guard/finite.h"
#include "trainer/run/staged_job.h"

namespace paceline::train {
namespace checkpointing {
namespace {

Position position_at(const Job& job, std::uint64_t iteration) {
  const auto [epoch, within, plan] = job.plan.at(iteration);
  return {.model = title_of(job.options.model, job.options.optimization),
          .image_size = job.data.train->image_size(),
          .classes = job.data.train->classes(),
          .seed = job.options.seed,
          .iteration = epoch * plan.iterations() + within,
          .iterations_per_epoch = plan.iterations(),
          .images_per_iteration = plan.batch * static_cast<std::size_t>(plan.ranks)};
}

RunFacts facts_of(const Job& job) {
  return {.settings = job.options.learning_settings,
          .data = job.data.title,
          .data_hash = job.data.hash,
          .iterations = job.iterations,
          .ranks = static_cast<std::uint64_t>(job.replicas.size())};
}

// A run with as many replicas as the checkpoint's goes on with each rank's own running statistics, another one with
// their mean on all ranks.
void restore_statistics(Job& job) {
  std::vector<float> own(job.model->statistics().size());
  job.model->memory().copy(job.model->statistics(), own);
  const std::vector<float>& saved = job.resumed.rank_statistics;
  if (saved.empty()) return;
  const std::size_t each = job.staged ? job.staged->statistics() : own.size();  // of the whole network
  const std::size_t ranks = saved.size() / each;
  const bool same = ranks == static_cast<std::size_t>(job.replicas.size());
  const std::size_t first = same ? static_cast<std::size_t>(job.replicas.rank()) : 0, count = same ? 1 : ranks;
  const std::size_t place = job.staged ? job.staged->mover.own().first_statistic : 0;
  const std::size_t values = job.staged ? job.staged->mover.own().statistics : own.size();
  for (std::size_t i = 0; i < values; ++i) {
    double sum = 0;
    for (std::size_t rank = first; rank < first + count; ++rank) sum += saved[rank * each + place + i];
    own[i] = static_cast<float>(sum / static_cast<double>(count));
  }
  job.model->memory().copy(own, job.model->statistics());
}

// Gives rank 0's weights, statistics and optimizer state to all ranks.
void share_model(Job& job) {
  job.ranks.broadcast(job.model->weights(), 0);
  job.ranks.broadcast(job.model->statistics(), 0);
  if (!is_shard(*job.optimizer, job.model->weights().size())) {
    for (std::vector<float>& array : job.optimizer->arrays()) job.ranks.broadcast(std::span<float>(array), 0);
  } else {
    std::array<std::uint64_t, 1> resumes = {job.whole_state ? 1u : 0u};
    job.ranks.broadcast(std::span<std::uint64_t>(resumes), 0);
    if (resumes[0] != 0) scatter_state(job.ranks, job.whole_state.get(), *job.optimizer);
    job.whole_state.reset();
  }
  std::vector<double>& scalars = job.optimizer->scalars();
  std::vector<std::uint64_t> bits(scalars.size());
  std::ranges::transform(scalars, bits.begin(), [](double value) { return std::bit_cast<std::uint64_t>(value); });
  job.ranks.broadcast(std::span<std::uint64_t>(bits), 0);
  std::ranges::transform(bits, scalars.begin(), [](std::uint64_t value) { return std::bit_cast<double>(value); });
}

}  // namespace
}  // namespace checkpointing

void read_state(Job& job) {
  if (!job.options.resume || job.ranks.rank() != 0) return;
  if (!job.has_checkpoint()) {
    if (!job.options.evaluate_only || !job.options.import_weights.empty()) return;
    throw Error(job.options.checkpoint, "there is no such file to evaluate", "name the ‹checkpoint› of a run");
  }
  Model& model = job.staged ? *job.staged->whole_model : *job.model;
  const std::size_t elements = model.weights().size();
  if (job.staged || is_shard(*job.optimizer, elements)) job.whole_state = whole_state_of(*job.optimizer, elements);
  const Position then = read_checkpoint(job.options.checkpoint, checkpointing::position_at(job, 0), model,
                                        job.whole_state ? *job.whole_state : *job.optimizer, &job.resumed);
  if (job.options.evaluate_only) return;  // the position in the run has no effect
  const bool schedule_needs_length = job.options.optimization.rate.schedule != "constant";
  job.resume_notes = resume_notes(job.resumed.facts, checkpointing::facts_of(job), schedule_needs_length);
  // With other ranks or another batch, the images that are left of the epoch are dealt anew.
  const std::uint64_t epoch = then.iteration / then.iterations_per_epoch;
  const std::uint64_t images = then.iteration % then.iterations_per_epoch * then.images_per_iteration;
  const EpochPlan plan = job.plan.at(job.plan.first_of(epoch)).plan;
  const std::uint64_t at_a_time = plan.batch * static_cast<std::size_t>(plan.ranks);
  if (images % at_a_time != 0) {
    throw Error(
        job.options.checkpoint,
        fmt::format("written after {} images of an epoch, where this run takes {} at a time", images, at_a_time),
        "resume with ranks and a batch size that divide them");
  }
  job.first_iteration = job.plan.first_of(epoch) + std::min<std::uint64_t>(images / at_a_time, plan.iterations());
}

void share_state(Job& job) {
  if (job.staged) {
    scatter_model(job);
  } else {
    checkpointing::share_model(job);
  }
  std::array<std::uint64_t, 5> facts = {job.first_iteration, job.resumed.pending.size(),
                                        job.resumed.rank_statistics.size(), job.resumed.warm_start.size(),
                                        std::bit_cast<std::uint64_t>(job.resumed.best_accuracy)};
  job.ranks.broadcast(std::span<std::uint64_t>(facts), 0);
  job.first_iteration = facts[0];
  job.resumed.pending.resize(facts[1]);
  job.resumed.rank_statistics.resize(facts[2]);
  job.resumed.warm_start.resize(facts[3]);
  job.resumed.best_accuracy = std::bit_cast<double>(facts[4]);
  job.ranks.broadcast(std::span<float>(job.resumed.pending), 0);
  job.ranks.broadcast(std::span<float>(job.resumed.rank_statistics), 0);
  job.ranks.broadcast(std::span<float>(job.resumed.warm_start), 0);
  checkpointing::restore_statistics(job);
}

// An iteration's loss is that of the weights before its step, so a finite loss proves nothing about the last step.
void check_state(Job& job, std::uint64_t iteration) {
  static const RangeName look("check for finite numbers");
  const Range range(Category::checkpoint, look, job.model->weights().size_bytes());
  const std::string part = first_nonfinite_part(*job.model, *job.optimizer, job.updater->pending());
  if (part.empty()) return agree(job.ranks, "");
  agree(job.ranks,
        fmt::format("{} holds a value that is no longer a finite number after iteration {}, at learning rate {:.3g}: "
                    "lower ‹lr› or add ‹warmup-epochs›{}",
                    part, iteration, job.rate_at(iteration), job.kept_checkpoint()));
}

void save_state(Job& job, std::uint64_t done, bool best) {
  const Range range(Category::checkpoint);
  RunState state;
  const std::unique_ptr<Model> gathered = job.staged ? gather_model(job) : nullptr;
  Model& model = gathered ? *gathered : *job.model;
  std::vector<float> room;
  const std::span<const float> own = job.model->memory().readable(job.model->statistics(), room);
  const std::span<const float> pending = job.updater->pending();
  if (job.staged) {
    state.rank_statistics = job.staged->mover.gather_statistics(own, job.replicas.size(), job.staged->statistics());
  } else {
    state.rank_statistics.resize(own.size() * static_cast<std::size_t>(job.ranks.size()));
    job.ranks.allgather(std::as_bytes(own), std::as_writable_bytes(std::span(state.rank_statistics)));
  }
  state.pending.assign(pending.begin(), pending.end());
  const std::span<const float> warm_start = job.updater->warm_start();
  state.warm_start.assign(warm_start.begin(), warm_start.end());
  state.best_accuracy = job.resumed.best_accuracy;
  const std::size_t elements = model.weights().size();
  std::unique_ptr<Optimizer> whole;
  if (job.staged) {
    if (gathered) whole = whole_state_of(*job.optimizer, elements);
    job.staged->mover.gather(*job.model, *job.optimizer, gathered.get(), whole.get());
  } else if (is_shard(*job.optimizer, elements)) {
    if (job.ranks.rank() == 0) whole = whole_state_of(*job.optimizer, elements);
    gather_state(job.ranks, *job.optimizer, whole.get());
  }
  if (job.ranks.rank() != 0) return;
  state.facts = checkpointing::facts_of(job);
  job.activity.saving = true;
  write_checkpoint(job.options.checkpoint, checkpointing::position_at(job, done), model,
                   whole ? *whole : *job.optimizer, state, job.options.keep);
  if (best) keep_as_best(job.options.checkpoint);
  job.activity.saving = false;
}

}  // namespace paceline::train
