#include "trainer/run/evaluator.h"

#include <algorithm>
#include <array>

#include "trainer/data/loader.h"
#include "trainer/data/sharding.h"
#include "trainer/updaters/gradient_pass.h"

namespace paceline::train {

Score evaluate(Model& model, Communicator& communicator, const ImageSource& data, std::size_t batch,
               Loader::Options loading) {
  // Every rank has gathered statistics of its own samples: their mean is the best estimate, and one model is scored.
  // In float64, whatever type gradients travel in (ChainerMN's AllreducePersistent).
  const std::span<float> statistics = model.statistics();
  const std::vector<float> own(statistics.begin(), statistics.end());
  std::vector<double> sum(statistics.begin(), statistics.end());
  communicator.allreduce_sum(sum);
  for (std::size_t i = 0; i < sum.size(); ++i) statistics[i] = static_cast<float>(sum[i] / communicator.size());

  const Part part = part_of(data.size(), communicator.rank(), communicator.size());
  const std::size_t batches = (part.count + batch - 1) / batch;
  loading.last = batches;
  loading.memory = model.image_memory();
  loading.stored = model.takes_stored_images();
  Loader loader(data, evaluation_batches(part, batch), loading);
  Score score;
  for (std::size_t done = 0; done < batches; ++done) {
    const Batch& one = loader.next();
    if (one.labels.empty()) continue;
    const Score of_batch = forward(model, one, 0, one.labels.size(), Mode::evaluate);
    score.loss_sum += of_batch.loss_sum;
    score.correct += of_batch.correct;
    score.samples += of_batch.samples;
  }
  std::array sums = {score.loss_sum, static_cast<double>(score.correct), static_cast<double>(score.samples)};
  communicator.allreduce_sum(sums);
  std::ranges::copy(own, statistics.begin());  // training goes on as if nobody had looked
  return {sums[0], static_cast<std::int64_t>(sums[1]), static_cast<std::int64_t>(sums[2])};
}

}  // namespace paceline::train
