#include "trainer/updaters/updater.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "trainer/core/error.h"
#include "trainer/core/ranges.h"

namespace paceline::train {

StepResult Updater::agree(const Score& local, bool stop, bool again) {
  std::array sums = {local.loss_sum, static_cast<double>(local.correct), static_cast<double>(local.samples),
                     stop ? 1.0 : 0.0, again ? 1.0 : 0.0};
  collectives_.allreduce_sum(sums);
  StepResult result;
  result.score = {sums[0], static_cast<std::int64_t>(sums[1]), static_cast<std::int64_t>(sums[2])};
  result.stop = sums[3] > 0;
  result.again = sums[4] > 0;
  return result;
}

void Updater::apply(std::span<float> gradient, double rate) {
  const Range range(Category::optimizer);
  if (clip_norm_) {
    const double divisor = clip_divisor(squares_of(gradient), *clip_norm_);
    if (divisor != 1) model_.memory().divide(gradient, static_cast<float>(divisor));
  }
  const Slice own = optimizer_.shard();
  optimizer_.step(model_.weights().subspan(own.first, own.count), gradient, static_cast<float>(rate));
}

std::string nonfinite_loss(std::uint64_t iteration, double rate, const std::string& layer) {
  return fmt::format(
      "the loss is no longer a finite number in iteration {}, at learning rate {:.3g}{}: lower ‹lr› or add "
      "‹warmup-epochs›",
      iteration, rate, layer.empty() ? "" : fmt::format(", from layer {} on", layer));
}

namespace {

// In every iteration each rank computes the gradient of its batch's mean loss, the gradients are averaged over the
// ranks, and each rank takes one step of the optimizer. All ranks take the same step from the same weights, so their
// weights stay equal to the bit.
class AllreduceUpdater : public Updater {
 public:
  using Updater::Updater;

  StepResult step(const Batch& batch, std::uint64_t iteration, double rate, bool stop) override {
    const Score local = pass_.run(batch, iteration);
    StepResult result;
    {
      const std::span<float> gradients = model_.gradients();
      const Range range(Category::allreduce, reduction_.payload_bytes(gradients.size()));
      reduction_.allreduce_gradient(gradients, 0, gradients.size());
      result = agree(local, stop);
    }
    if (std::isfinite(result.score.loss_sum)) apply(model_.gradients(), rate);
    return result;
  }
};

struct Entry {
  const char* name;
  bool threaded, allreduces;
  const char* summary;
  std::unique_ptr<Updater> (*make)(const UpdaterParts&);
};

constexpr Entry entries[] = {
#define PACELINE_UPDATER(name, threaded, allreduces, summary) \
  {#name, threaded, allreduces, summary, make_##name##_updater},
#include "trainer/updaters/updaters.def"
#undef PACELINE_UPDATER
};

const Entry& entry_of(const std::string& name) {
  const auto found = std::ranges::find_if(entries, [&](const Entry& entry) { return name == entry.name; });
  if (found == std::end(entries)) throw Error("‹updater› " + name, "unknown updater", "", Status::usage);
  return *found;
}

}  // namespace

std::vector<UpdaterName> updater_summaries() {
  std::vector<UpdaterName> names;
  for (const Entry& entry : entries) names.push_back({entry.name, entry.summary});
  return names;
}

bool updater_needs_thread(const std::string& name) { return entry_of(name).threaded; }

bool updater_allreduces(const std::string& name) { return entry_of(name).allreduces; }

void check_updater(const std::string& name, int ranks, const std::string& communicator, const std::string& dtype) {
  const auto refuse = [&](const std::string& wrong, const std::string& remedy) {
    return Error("‹updater› " + name, wrong, remedy, Status::usage);
  };
  if (name == "single" && ranks > 1) throw refuse(fmt::format("is for one rank, not {}", ranks), "take allreduce");
  if (!entry_of(name).allreduces && communicator != "mpi") {
    throw refuse("makes no allreduce of gradients", "leave out ‹communicator› " + communicator);
  }
  constexpr std::string_view with_halves[] = {"mpi", "single_node", "ring", "pure_nccl"};
  if (name == "sharded" && std::ranges::count(with_halves, communicator) == 0) {
    throw refuse(fmt::format("communicator {} has no reduce-scatter", communicator), "take mpi, ring or pure_nccl");
  }
  const bool compresses = name == "top_k" || name == "power_sgd";
  if ((compresses || name == "local_sgd") && dtype != "f32") {
    throw refuse(compresses ? "compresses gradients by itself" : "averages weights, which " + dtype + " would round",
                 "leave out ‹allreduce-dtype› " + dtype);
  }
  if ((name == "single" || name == "parameter_server") && dtype != "f32") {
    throw refuse("sends no gradients in " + dtype, "leave out ‹allreduce-dtype›");
  }
}

std::unique_ptr<Updater> make_updater(const std::string& name, const UpdaterParts& parts) {
  return entry_of(name).make(parts);
}

std::unique_ptr<Updater> make_allreduce_updater(const UpdaterParts& parts) {
  return std::make_unique<AllreduceUpdater>(parts);
}

// The mean over one rank is the rank's own gradient.
std::unique_ptr<Updater> make_single_updater(const UpdaterParts& parts) { return make_allreduce_updater(parts); }

}  // namespace paceline::train
