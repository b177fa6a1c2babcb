// A communicator that notes which collective call a rank waits in.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/run/activity.h"

namespace paceline::train {

class WatchedCommunicator : public Communicator {
 public:
  // Both must outlive it.
  WatchedCommunicator(Communicator& inner, Activity& activity) : inner_(inner), activity_(activity) {}

  void allreduce_mean(std::span<float> values) override {
    const Note note(*this, inner_.queues() ? nullptr : "allreduce");
    inner_.allreduce_mean(values);
  }
  void allreduce_gradient(std::span<float> gradient, std::size_t first, std::size_t count) override {
    const Note note(*this, inner_.queues() ? nullptr : "allreduce of the gradient");  // NCCL has its own limit
    inner_.allreduce_gradient(gradient, first, count);
  }
  void reduce_sum(std::span<float> values, int root) override {
    const Note note(*this, "reduce");
    inner_.reduce_sum(values, root);
  }
  void wait_for_all() override {
    const Note note(*this, "barrier");
    inner_.wait_for_all();
  }
  void allgather(std::span<const std::byte> own, std::span<std::byte> all) override {
    const Note note(*this, "allgather");
    inner_.allgather(own, all);
  }
  void allreduce_sum(std::span<double> values) override {
    const Note note(*this, "allreduce");
    inner_.allreduce_sum(values);
  }
  void broadcast(std::span<float> values, int root) override { broadcast_any(values, root); }
  void broadcast(std::span<std::uint64_t> values, int root) override { broadcast_any(values, root); }
  void broadcast(std::span<std::byte> values, int root) override { broadcast_any(values, root); }

  // Nothing here waits for all ranks.
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  int local_rank() const override { return inner_.local_rank(); }
  int local_size() const override { return inner_.local_size(); }
  void set_segments(std::vector<std::size_t> offsets) override { inner_.set_segments(std::move(offsets)); }
  std::unique_ptr<Transfer> begin_mean(std::span<float> gradient, std::span<const Slice> parts) override {
    return inner_.begin_mean(gradient, parts);
  }
  bool queues() const override { return inner_.queues(); }
  void join() override { inner_.join(); }
  void set_stream(void* stream) override { inner_.set_stream(stream); }
  std::shared_ptr<float> gradient_memory(std::size_t values) const override { return inner_.gradient_memory(values); }
  bool wants_gradients() const override { return inner_.wants_gradients(); }
  void copy(std::span<const float> from, std::span<float> to) const override { inner_.copy(from, to); }
  void send(std::span<const std::byte> bytes, int to) override { inner_.send(bytes, to); }
  void receive(std::span<std::byte> bytes, int from) override { inner_.receive(bytes, from); }
  std::optional<int> sender() override { return inner_.sender(); }
  std::size_t payload_bytes(std::size_t values) const override { return inner_.payload_bytes(values); }

 private:
  struct Note {
    Note(WatchedCommunicator& of, const char* name) : activity(name == nullptr ? nullptr : &of.activity_) {
      if (activity != nullptr) activity->begin(name);
    }
    ~Note() {
      if (activity != nullptr) activity->end();
    }
    Note(const Note&) = delete;
    Note& operator=(const Note&) = delete;
    Activity* const activity;
  };

  template <typename Values>
  void broadcast_any(Values values, int root) {
    const Note note(*this, "broadcast");
    inner_.broadcast(values, root);
  }

  Communicator& inner_;
  Activity& activity_;
};

}  // namespace paceline::train
