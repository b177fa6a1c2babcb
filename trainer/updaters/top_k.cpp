// SPDX-License-Identifier: Apache-2.0
// `top_k`: each rank sends the k largest values of its gradient with their positions, and keeps the rest for later
// steps (Stich, Cordonnier and Jaggi, arXiv 1809.07599; Lin et al., arXiv 1712.01887, without momentum correction). k
// is a share of all parameters. The mean is over all ranks: a value that one rank of n sends counts 1/n.
#include <algorithm>
#include <limits>

#include "trainer/core/error.h"
#include "trainer/updaters/compressed.h"

namespace paceline::train {
namespace {

constexpr UpdaterOption top_k_share{.key = "top-k-share",
                                    .help = "share of the gradient's values that each rank sends",
                                    .least = 1e-9,
                                    .most = 1,
                                    .standard = 0.01};

class TopKUpdater : public CompressedUpdater {
 public:
  explicit TopKUpdater(const UpdaterParts& parts) : CompressedUpdater(parts) {
    const std::size_t values = model_.gradients().size();
    const auto wanted = std::ceil(*parts.value(top_k_share) * static_cast<double>(values));
    own_.resize(std::clamp<std::size_t>(static_cast<std::size_t>(wanted), 1, values));
    if (own_.size() * sizeof(Entry) > std::size_t{std::numeric_limits<int>::max()}) {
      throw Error("‹top-k-share›", "more values than an MPI call can count", "lower it", Status::usage);
    }
    all_.resize(own_.size() * static_cast<std::size_t>(collectives_.size()));
  }

 private:
  struct Entry {
    std::uint32_t position;
    float value;
  };

  StepResult average(const Score& local, bool stop) override {
    const std::span<float> gradient = model_.gradients();
    {
      const Range range(Category::optimizer, compress_, gradient.size_bytes());
      select(gradient);
    }
    StepResult result;
    {
      const Range range(Category::allreduce, all_gather_, own_.size() * sizeof(Entry));
      collectives_.allgather(std::as_bytes(std::span(own_)), std::as_writable_bytes(std::span(all_)));
      result = agree(local, stop);
    }
    const Range range(Category::optimizer, decompress_, gradient.size_bytes());
    std::ranges::fill(gradient, 0.0f);
    for (const Entry& entry : all_) gradient[entry.position] += entry.value;  // in the order of the ranks
    model_.memory().divide(gradient, static_cast<float>(collectives_.size()));
    return result;
  }

  // Fills own_ with the largest values, of equal ones the first, and the residual with the others.
  void select(std::span<const float> gradient) {
    magnitudes_.resize(gradient.size());
    std::ranges::transform(gradient, magnitudes_.begin(), [](float value) {
      return std::isnan(value) ? std::numeric_limits<float>::infinity() : std::abs(value);
    });
    const auto last = magnitudes_.begin() + static_cast<std::ptrdiff_t>(own_.size() - 1);
    std::nth_element(magnitudes_.begin(), last, magnitudes_.end(), std::greater<>());
    const float least = *last;  // of those that are sent
    auto equal =
        static_cast<std::size_t>(std::count(magnitudes_.begin(), last + 1, least));  // that many of them are sent
    std::size_t next = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const float magnitude = std::isnan(gradient[i]) ? std::numeric_limits<float>::infinity() : std::abs(gradient[i]);
      const bool sent = magnitude > least || (magnitude == least && equal > 0);
      residual_[i] = sent ? 0 : gradient[i];
      if (!sent) continue;
      if (magnitude == least) --equal;
      own_[next++] = {static_cast<std::uint32_t>(i), gradient[i]};
    }
  }

  std::vector<Entry> own_, all_;
  std::vector<float> magnitudes_;
  const RangeName all_gather_{"all-gather"};
};

}  // namespace

const UpdaterKind top_k_updater{
    .name = "top_k",
    .summary = "each rank sends the largest values of its gradient and keeps the others for later",
    .make = make_of<TopKUpdater>,
    .options = {&top_k_share, 1},
    .only_f32 = "compresses gradients by itself",
    .on_gpus = false,
    .copies = 2};

}  // namespace paceline::train
