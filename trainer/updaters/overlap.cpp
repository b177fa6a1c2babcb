// `overlap`: the gradient is averaged in buckets while backward still computes the rest, as PyTorch's
// DistributedDataParallel does. A second thread makes the calls: Open MPI 4.1 moves a nonblocking collective forward
// only inside calls of MPI, so MPI_Iallreduce would stand still while layers compute, and it knows none of our
// algorithms. NCCL's means go into a stream of the GPU instead, each behind what backward has put into its own by then.
//
// In fp16 a gradient may be too large, which is known when all of backward is done; its rank then repeats it with
// another scale. As the others have its numbers by then, all repeat theirs: no step is left out, and the means are of
// one batch.
#include <cmath>
#include <cstdint>
#include <optional>

#include "trainer/core/ranges.h"
#include "trainer/updaters/buckets.h"
#include "trainer/updaters/sender.h"
#include "trainer/updaters/updater.h"

namespace paceline::train {
namespace {

class OverlapUpdater : public Updater {
 public:
  explicit OverlapUpdater(const UpdaterParts& parts)
      : Updater(parts),
        first_bytes_(parts.first_bucket_bytes),
        bytes_(parts.bucket_bytes),
        sender_(parts.communicator) {}

  StepResult step(const Batch& batch, std::uint64_t iteration, double rate, bool stop) override {
    if (plan_) begin_sending();
    const GradientPass::Ready ready = [this](std::size_t first, std::size_t count) {
      // The last parameter first, as layers go.
      for (std::size_t parameter = first + count; parameter-- > first;) arrived(parameter);
    };
    const Score local = pass_.run(batch, iteration, ready);
    StepResult result = average(local, stop);
    while (result.again) {  // what was sent was too large for fp16 somewhere
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
  // When all is sent.
  StepResult average(const Score& local, bool stop) {
    const Range range(Category::allreduce);  // what backward did not hide
    if (!plan_) plan();
    sender_.wait();
    return agree(local, stop, pass_.wants_again());
  }

  void arrived(std::uint64_t parameter) {
    if (!plan_) return order_.push_back(parameter);
    --missing_[plan_->of[parameter]];
    // All ranks send in the order of the plan, whatever is ready first.
    while (next_ < plan_->buckets.size() && missing_[next_] == 0) send(next_++);
  }

  // The first iteration shows in which order gradients arrive; rank 0's order is everybody's. Its own gradients go
  // after backward.
  void plan() {
    collectives_.broadcast(std::span<std::uint64_t>(order_), 0);
    plan_ = plan_buckets(model_, order_, first_bytes_, bytes_, reduction_.payload_bytes(1));
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

  const std::size_t first_bytes_, bytes_;
  std::vector<std::uint64_t> order_;  // of arrival
  std::optional<BucketPlan> plan_;
  std::vector<RangeName> names_;
  std::vector<std::size_t> missing_;  // parameters of each bucket whose gradients have yet to come
  std::size_t next_ = 0;              // bucket to send
  Sender sender_;                     // last: ends before what it works with
};

}  // namespace

std::unique_ptr<Updater> make_overlap_updater(const UpdaterParts& parts) {
  return std::make_unique<OverlapUpdater>(parts);
}

}  // namespace paceline::train
