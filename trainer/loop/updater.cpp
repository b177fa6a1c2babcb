#include "trainer/loop/updater.h"

#include <array>
#include <cmath>

#include "trainer/ranges.h"

namespace paceline::train {

StepResult SynchronousUpdater::step(const Batch& batch, double rate, bool stop) {
  Score local;
  {
    const Range range(Category::forward);
    local = model_.forward(batch.images, batch.labels, Mode::train);
  }
  {
    const Range range(Category::backward);
    model_.backward(1.0f / static_cast<float>(batch.labels.size()));
  }
  StepResult result;
  {
    const std::span<float> gradients = model_.gradients();
    const Range range(Category::allreduce, communicator_.payload_bytes(gradients.size()));
    communicator_.allreduce_mean(gradients);
    // Right after the gradients, when nobody has to wait any more.
    std::array sums = {local.loss_sum, static_cast<double>(local.correct), static_cast<double>(local.samples),
                       stop ? 1.0 : 0.0};
    communicator_.allreduce_sum(sums);
    result.score = {sums[0], static_cast<std::int64_t>(sums[1]), static_cast<std::int64_t>(sums[2])};
    result.stop = sums[3] > 0;
  }
  if (std::isfinite(result.score.loss_sum)) {
    const Range range(Category::optimizer);
    optimizer_.step(model_.weights(), model_.gradients(), static_cast<float>(rate));
  }
  return result;
}

}  // namespace paceline::train
