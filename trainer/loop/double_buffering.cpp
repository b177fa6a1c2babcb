// `double_buffering`, as ChainerMN has it: there are two sets of gradients. While one iteration computes into the
// first, the second, that of the iteration before, is averaged by another thread; then the step takes that average and
// the sets are swapped. So each step's gradient is exactly one step stale, and the first iteration takes no step.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>

#include "trainer/loop/background.h"
#include "trainer/loop/updater.h"
#include "trainer/ranges.h"

namespace paceline::train {
namespace {

class DoubleBufferingUpdater : public Updater {
 public:
  explicit DoubleBufferingUpdater(const UpdaterParts& parts)
      : Updater(parts), storage_(allocate(model_.gradients().size_bytes())) {
    other_ = {storage_.get(), model_.gradients().size()};
    std::ranges::fill(other_, 0.0f);
  }

  StepResult step(const Batch& batch, std::uint64_t iteration, double rate, bool stop) override {
    const Score local = pass_.run(batch, iteration);
    const std::span<float> computed = model_.gradients();
    StepResult result;
    {
      const Range range(Category::allreduce);  // what the iteration did not hide
      background_.wait();
      result = agree(local, stop);
    }
    if (!std::isfinite(result.score.loss_sum)) return result;
    const std::size_t bytes = communicator_.payload_bytes(computed.size());
    mark(Category::allreduce, ready_, bytes);
    background_.submit([this, computed, bytes] {
      {
        const Range range(Category::wait);
        communicator_.wait_for_all();
      }
      const Range range(Category::allreduce, bucket_, bytes);
      communicator_.allreduce_gradient(computed, 0, computed.size());
    });
    if (averaged_) apply(other_, rate);
    model_.set_gradients(other_);
    other_ = computed;
    averaged_ = true;
    return result;
  }

  bool settle(bool stop) override {
    const Range range(Category::allreduce);
    background_.wait();
    return stop;
  }

  std::span<const float> pending() const override { return averaged_ ? other_ : std::span<const float>(); }

  void restore_pending(std::span<const float> average) override {
    std::ranges::copy(average, other_.begin());
    averaged_ = true;
  }

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };

  static float* allocate(std::size_t bytes) {
    constexpr std::size_t line = 64;
    void* memory = std::aligned_alloc(line, (bytes + line - 1) / line * line);
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<float*>(memory);
  }

  std::unique_ptr<float, Free> storage_;
  std::span<float> other_;  // the set that backward does not write
  bool averaged_ = false;   // whether it holds an average, or will when the other thread is done
  const RangeName ready_{"bucket ready"}, bucket_{"bucket 0"};
  Background background_{"communication"};  // last: ends before what it works with
};

}  // namespace

std::unique_ptr<Updater> make_double_buffering_updater(const UpdaterParts& parts) {
  return std::make_unique<DoubleBufferingUpdater>(parts);
}

}  // namespace paceline::train
