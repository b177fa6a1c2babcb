// SPDX-License-Identifier: Apache-2.0
// A communicator that records in an Activity which collective call this rank is waiting in.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/guard/activity.h"

namespace paceline::train {

// Records a collective call for as long as it exists; nothing if the name is null.
class RecordedCall {
 public:
  // counts: all ranks of the job make the call.
  RecordedCall(Activity& activity, const char* name, bool counts = true)
      : activity_(name == nullptr ? nullptr : &activity) {
    if (activity_ == nullptr) return;
    if (counts) {
      activity_->begin(name);
    } else {
      activity_->begin_wait(name);
    }
  }
  ~RecordedCall() {
    if (activity_ != nullptr) activity_->end();
  }
  RecordedCall(const RecordedCall&) = delete;
  RecordedCall& operator=(const RecordedCall&) = delete;

 private:
  Activity* const activity_;
};

class WatchedCollectives : public Collectives {
 public:
  // counts: the calls go over all ranks of the job.
  WatchedCollectives(Collectives& inner, Activity& activity, bool counts = true)
      : inner_(inner), activity_(activity), counts_(counts) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  int local_rank() const override { return inner_.local_rank(); }
  int local_size() const override { return inner_.local_size(); }

  void wait_for_all() override {
    const RecordedCall call(activity_, "barrier", counts_);
    inner_.wait_for_all();
  }
  void broadcast(std::span<float> values, int root) override { broadcast_any(values, root); }
  void broadcast(std::span<std::uint64_t> values, int root) override { broadcast_any(values, root); }
  void broadcast(std::span<std::byte> values, int root) override { broadcast_any(values, root); }
  void allreduce_sum(std::span<double> values) override {
    const RecordedCall call(activity_, "allreduce", counts_);
    inner_.allreduce_sum(values);
  }
  void allgather(std::span<const std::byte> own, std::span<std::byte> all) override {
    const RecordedCall call(activity_, "allgather", counts_);
    inner_.allgather(own, all);
  }

  // Messages between two ranks do not wait for all ranks.
  void send(std::span<const std::byte> bytes, int to) override { inner_.send(bytes, to); }
  void receive(std::span<std::byte> bytes, int from) override { inner_.receive(bytes, from); }
  std::optional<int> sender() override { return inner_.sender(); }

 private:
  template <typename Values>
  void broadcast_any(Values values, int root) {
    const RecordedCall call(activity_, "broadcast", counts_);
    inner_.broadcast(values, root);
  }

  Collectives& inner_;
  Activity& activity_;
  const bool counts_;
};

// Means that a stream queues are not recorded, because NCCL has a time limit of its own.
class WatchedReduction : public GradientReduction, public ShardedReduction {
 public:
  WatchedReduction(GradientReduction& inner, Activity& activity) : inner_(inner), activity_(activity) {}

  void allreduce_mean(std::span<float> values) override {
    const RecordedCall call(activity_, inner_.queues() ? nullptr : "allreduce");
    inner_.allreduce_mean(values);
  }
  void allreduce_gradient(std::span<float> gradient, std::size_t first, std::size_t count) override {
    const RecordedCall call(activity_, inner_.queues() ? nullptr : "allreduce of the gradient");
    inner_.allreduce_gradient(gradient, first, count);
  }
  void reduce_sum(std::span<float> values, int root) override {
    const RecordedCall call(activity_, "reduce");
    inner_.reduce_sum(values, root);
  }

  ShardedReduction* sharded() override { return inner_.sharded() != nullptr ? this : nullptr; }
  Slice own_shard(std::size_t values) const override { return inner_.sharded()->own_shard(values); }
  void reduce_scatter_mean(std::span<float> values) override {
    const RecordedCall call(activity_, inner_.queues() ? nullptr : "reduce-scatter of the gradient");
    inner_.sharded()->reduce_scatter_mean(values);
  }
  void all_gather(std::span<float> values) override {
    const RecordedCall call(activity_, inner_.queues() ? nullptr : "all-gather of the weights");
    inner_.sharded()->all_gather(values);
  }

  // None of these waits for all ranks.
  void set_segments(std::vector<std::size_t> offsets) override { inner_.set_segments(std::move(offsets)); }
  std::size_t payload_bytes(std::size_t values) const override { return inner_.payload_bytes(values); }
  const GradientMemory& memory() const override { return inner_.memory(); }
  DeviceTransfers* device() override { return inner_.device(); }

 private:
  GradientReduction& inner_;
  Activity& activity_;
};

// The arguments must outlive the result.
inline Communicator watched(const Communicator& collectives, const Communicator& reduction, Activity& activity) {
  return {std::make_unique<WatchedCollectives>(*collectives.collectives, activity),
          std::make_unique<WatchedReduction>(*reduction.reduction, activity)};
}

}  // namespace paceline::train
