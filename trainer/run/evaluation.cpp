// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/evaluation.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>

#include "trainer/data/sharding.h"
#include "trainer/guard/agreement.h"
#include "trainer/run/job.h"
#include "trainer/updaters/gradient_pass.h"

namespace paceline::train {

namespace evaluation {
namespace {

// Scores this rank's part of the samples.
Score score_of_part(Model& model, Collectives& collectives, const ImageSource& data, std::size_t batch,
                    Loader::Options loading, const std::function<Score(const Batch&)>& of_batch) {
  // Every rank has gathered running statistics of its own samples. Their mean is the best estimate, so all ranks score
  // with it, averaged in float64 whatever type gradients travel in (as ChainerMN's AllreducePersistent does).
  std::vector<float> own(model.statistics().size());
  model.memory().copy(model.statistics(), own);
  model.memory().copy(mean_statistics(model, collectives), model.statistics());

  const Slice part = part_of(data.size(), collectives.rank(), collectives.size());
  const std::size_t batches = (part.count + batch - 1) / batch;
  loading.last = batches;
  loading.memory = model.image_memory();
  loading.stored = model.takes_stored_images();
  Loader loader(data, evaluation_batches(part, batch), loading);
  Score score;
  for (std::size_t done = 0; done < batches; ++done) {
    const Batch& one = loader.next();
    if (!one.labels.empty()) score += of_batch(one);
  }
  model.memory().copy(own, model.statistics());  // training goes on with each rank's own statistics
  return score;
}

}  // namespace
}  // namespace evaluation

Score evaluate(Job& job, std::uint64_t iteration) {
  const Range range(Category::evaluate);
  Loader::Options loading;
  loading.workers = job.options.loader_workers;
  loading.bad = job.bad_test.get();
  loading.progress = &job.activity.images;
  const auto batch = static_cast<std::size_t>(job.options.batch_size / job.options.pipeline.microbatches);
  const auto of_batch = [&](const Batch& one) {
    return job.staged ? job.staged->pipeline->evaluate(one)
                      : forward(*job.model, one, 0, one.labels.size(), Mode::evaluate);
  };
  const Score own = evaluation::score_of_part(*job.model, job.replicas, job.test_images(), batch, loading, of_batch);
  const Score score = sum_over_ranks(job.ranks, own);
  if (score.samples == 0) {
    throw AgreedError(fmt::format("{}: no test image can be read", job.options.data), Status::failed, 0);
  }
  if (!std::isfinite(score.loss_sum)) {  // the same on every rank
    throw AgreedError(
        fmt::format("the loss of the test images is no longer a finite number after iteration {}, at learning rate "
                    "{:.3g}: lower ‹lr› or add ‹warmup-epochs›{}",
                    iteration, job.rate_at(iteration), job.kept_checkpoint()),
        Status::failed, 0);
  }
  mark_accuracy(static_cast<double>(score.correct) / static_cast<double>(score.samples));
  return score;
}

Score evaluate(Model& model, Collectives& collectives, const ImageSource& data, std::size_t batch,
               Loader::Options loading) {
  const auto of_batch = [&](const Batch& one) { return forward(model, one, 0, one.labels.size(), Mode::evaluate); };
  return sum_over_ranks(collectives, evaluation::score_of_part(model, collectives, data, batch, loading, of_batch));
}

std::vector<float> mean_statistics(Model& model, Collectives& collectives) {
  std::vector<float> room;
  const std::span<const float> own = model.memory().readable(model.statistics(), room);
  std::vector<double> sum(own.begin(), own.end());
  collectives.allreduce_sum(sum);
  std::vector<float> mean(sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i) mean[i] = static_cast<float>(sum[i] / collectives.size());
  return mean;
}

Score sum_over_ranks(Collectives& collectives, const Score& own) {
  std::array sums = {own.loss_sum, static_cast<double>(own.correct), static_cast<double>(own.samples),
                     static_cast<double>(own.in_top_5)};
  collectives.allreduce_sum(sums);
  return {sums[0], static_cast<std::int64_t>(sums[1]), static_cast<std::int64_t>(sums[2]),
          static_cast<std::int64_t>(sums[3])};
}

}  // namespace paceline::train
