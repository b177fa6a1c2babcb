// SPDX-License-Identifier: Apache-2.0
// `overlap`: the gradient is averaged in buckets while backward still computes the rest, as PyTorch's
// DistributedDataParallel does. A second thread makes the calls, because Open MPI 4.1 progresses a nonblocking
// collective only inside MPI calls: MPI_Iallreduce would stand still while layers compute, and it has none of our
// algorithms. NCCL's means go into a stream of the GPU instead, each behind the work that backward has queued until
// then.
//
// In fp16 a gradient may overflow, which is only known at the end of backward; its rank then repeats backward with
// another scale. The other ranks have received its values by then, so all ranks repeat theirs: no step is left out, and
// each mean is of one batch.
#include <cmath>
#include <cstdint>
#include <optional>

#include "trainer/core/ranges.h"
#include "trainer/updaters/buckets.h"
#include "trainer/updaters/sender.h"
#include "trainer/updaters/updater.h"

namespace paceline::train {
namespace {

constexpr double mib = 1 << 20;
constexpr std::size_t first_bucket_bytes = std::size_t{1} << 20;  // of the first bucket, which should leave early

constexpr UpdaterOption bucket_mb{.key = "bucket-mb",
                                  .help = "size of a bucket in MiB; default: 25, the first bucket at most 1",
                                  .least = 1e-6,
                                  .most = 1e6};

class OverlapUpdater : public Updater {
 public:
  explicit OverlapUpdater(const UpdaterParts& parts)
      : Updater(parts),
        bytes_(static_cast<std::size_t>(parts.value(bucket_mb).value_or(25) * mib)),
        sender_(parts.communicator) {}

  StepResult step(const Batch& batch, std::uint64_t iteration, double rate, bool stop) override {
    if (plan_) begin_sending();
    const GradientPass::Ready ready = [this](std::size_t first, std::size_t count) {
      // Backward reaches the last parameter first.
      for (std::size_t parameter = first + count; parameter-- > first;) arrived(parameter);
    };
    const Score local = pass_.run(batch, iteration, ready);
    StepResult result = average(local, stop);
    while (result.again) {  // a gradient overflowed in fp16 on some rank
      begin_sending();
      pass_.again(ready);
      result = average(local, stop);
    }
    if (std::isfinite(result.score.loss_sum)) apply(model_.gradients(), rate);
    return result;
  }

  bool settle(bool stop) override {
    sender_.settle();
    return stop;
  }

 private:
  // After everything is sent.
  StepResult average(const Score& local, bool stop) {
    const Range range(Category::allreduce);  // the part that backward did not hide
    if (!plan_) plan();
    sender_.wait();
    return agree(local, stop, pass_.wants_again());
  }

  void arrived(std::uint64_t parameter) {
    if (!plan_) return order_.push_back(parameter);
    --missing_[plan_->of[parameter]];
    // All ranks send in the order of the plan, whichever bucket is ready first.
    while (next_ < plan_->buckets.size() && missing_[next_] == 0) send(next_++);
  }

  // The first iteration records the order in which gradients arrive, and rank 0's order becomes that of all ranks. The
  // first iteration's own gradients are sent after backward.
  void plan() {
    collectives_.broadcast(std::span<std::uint64_t>(order_), 0);
    plan_ = plan_buckets(model_, order_, first_bucket_bytes, bytes_, reduction_.payload_bytes(1));
    for (std::size_t k = 0; k < plan_->buckets.size(); ++k) names_.emplace_back("bucket " + std::to_string(k));
    begin_sending();
    for (const std::uint64_t parameter : order_) arrived(parameter);
  }

  void begin_sending() {
    missing_.clear();
    for (const Bucket& bucket : plan_->buckets) missing_.push_back(bucket.parameters);
    next_ = 0;
  }

  void send(std::size_t k) { sender_.send(model_.gradients(), plan_->buckets[k].slices, names_[k]); }

  const std::size_t bytes_;
  std::vector<std::uint64_t> order_;  // of arrival
  std::optional<BucketPlan> plan_;
  std::vector<RangeName> names_;
  std::vector<std::size_t> missing_;  // number of each bucket's parameters without a gradient yet
  std::size_t next_ = 0;              // the next bucket to send
  Sender sender_;                     // last: destroyed before the objects that it uses
};

}  // namespace

const UpdaterKind overlap_updater{
    .name = "overlap",
    .summary = "the gradient is averaged in buckets, each sent while backward computes the next ones",
    .make = make_of<OverlapUpdater>,
    .options = {&bucket_mb, 1},
    .allreduces = true,
    .threaded = true};

}  // namespace paceline::train
