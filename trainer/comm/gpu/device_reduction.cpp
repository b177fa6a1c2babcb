// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/gpu/device_reduction.h"

#include <algorithm>
#include <utility>

#include "trainer/core/error.h"

namespace paceline::train::nccl {
namespace {

constexpr std::size_t longest_call = std::size_t{1} << 30;  // values; see comm/allreduce.h

// Threads other than the main one start on device 0, and their queries must not end a graph capture in another thread.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    PACELINE_CHECK_CUDA(cudaSetDevice(device));
    PACELINE_CHECK_CUDA(cudaThreadExchangeStreamCaptureMode(&mode_));
  }
  ~OnDevice() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

class DeviceReduction : public GradientReduction,
                        public DeviceTransfers,
                        public ShardedReduction,
                        public GradientMemory {
 public:
  DeviceReduction(int ranks, std::unique_ptr<GradientReduction> host, std::unique_ptr<Ranks> ordered,
                  std::unique_ptr<Allreduce> allreduce, std::shared_ptr<ModelMemory> memory, const Options& options)
      : options_(options),
        type_(type_of(options.dtype)),
        ranks_(ranks),
        memory_(std::move(memory)),
        host_(std::move(host)),
        ordered_(std::move(ordered)),
        allreduce_(std::move(allreduce)),
        comms_(allreduce_->comms()) {
    PACELINE_CHECK_CUDA(cudaGetDevice(&device_));
  }

  std::size_t payload_bytes(std::size_t values) const override { return values * bytes_of(type_); }

  void set_segments(std::vector<std::size_t> offsets) override {
    segments_ = offsets;
    host_->set_segments(std::move(offsets));
  }

  DeviceTransfers* device() override { return this; }
  void set_stream(void* stream) override { memory_->stream = static_cast<cudaStream_t>(stream); }

  void allreduce_mean(std::span<float> values) override { allreduce_gradient(values, 0, values.size()); }

  void allreduce_gradient(std::span<float> gradient, std::size_t first, std::size_t count) override {
    if (count == 0 || (ranks_ == 1 && type_ == Type::f32)) return;  // one rank's gradient is its mean
    if (!cuda::on_device(gradient.data())) return host_->allreduce_gradient(gradient, first, count);
    const Slice part{first, count};
    record_model(ready_);
    ready_.make_wait(stream_);
    put(gradient, {&part, 1});
    wait_for_stream(stream_, comms_, options_.timeout_s);
  }

  std::unique_ptr<Transfer> begin_mean(std::span<float> gradient, std::span<const Slice> parts) override;
  bool queues() const override { return !allreduce_->uses_mpi(); }
  void join() override {
    if (memory_->stream == nullptr) return wait_for_stream(stream_, comms_, options_.timeout_s);
    last_.make_wait(memory_->stream);
  }

  std::shared_ptr<float> allocate(std::size_t values) const override {
    const std::size_t bytes = std::max<std::size_t>(values, 1) * sizeof(float);
    if (required()) {
      auto owner = registered_memory(bytes);
      PACELINE_CHECK_CUDA(cudaMemset(owner.get(), 0, bytes));
      PACELINE_CHECK_CUDA(cudaStreamSynchronize(nullptr));  // other streams do not wait for it
      return std::static_pointer_cast<float>(owner);
    }
    auto buffer = std::make_shared<cuda::Buffer>(cuda::zeroed_buffer(bytes));
    return {buffer, buffer->data<float>()};
  }

  const GradientMemory& memory() const override { return *this; }
  bool required() const override { return options_.registered && !comms_.empty(); }

  void copy(std::span<const float> from, std::span<float> to) const override { memory_->copy(from, to); }

  ShardedReduction* sharded() override { return allreduce_->has_halves() ? this : nullptr; }
  Slice own_shard(std::size_t values) const override { return allreduce_->own_slice(values); }

  void reduce_scatter_mean(std::span<float> values) override {
    if (values.size() > longest_call) {
      throw Error("‹updater› sharded", "the network has more than 2^30 parameters", "take allreduce");
    }
    record_model(ready_);
    ready_.make_wait(stream_);
    if (type_ == Type::f32) {
      allreduce_->reduce_scatter(
          {type_, reinterpret_cast<std::byte*>(values.data()), values.size(), static_cast<float>(ranks_)}, stream_);
    } else {
      std::byte* const room = narrow_room(values.size() * bytes_of(type_));
      narrow(type_, values.data(), values.size(), static_cast<float>(ranks_), room, stream_);
      allreduce_->reduce_scatter({type_, room, values.size(), 1.0f}, stream_);
      const Slice own = own_shard(values.size());
      widen(type_, room + own.first * bytes_of(type_), own.count, values.data() + own.first, stream_);
    }
    wait_for_stream(stream_, comms_, options_.timeout_s);
  }

  void all_gather(std::span<float> values) override {
    allreduce_->all_gather({Type::f32, reinterpret_cast<std::byte*>(values.data()), values.size(), 1.0f}, stream_);
    wait_for_stream(stream_, comms_, options_.timeout_s);
  }

  void reduce_sum(std::span<float> values, int root) override {
    memory_->in_host_memory(values, [&](std::span<float> numbers) { host_->reduce_sum(numbers, root); });
  }

 private:
  friend class QueuedTransfer;
  friend class MpiTransfer;

  // Records `ready` behind the work that is in the model's stream now. Without such a stream the gradients are ready.
  void record_model(cuda::Event& ready) const {
    if (memory_->stream != nullptr) ready.record(memory_->stream);
  }

  // Puts the means into the stream; an algorithm over MPI computes them before this returns.
  void put(std::span<float> gradient, std::span<const Slice> parts) {
    for (const Slice& part : parts) {
      if (!allreduce_->by_segment()) {
        put(gradient.subspan(part.first, part.count));
        continue;
      }
      // The part ends at a parameter or within one.
      std::size_t first = part.first;
      const std::size_t end = part.first + part.count;
      for (auto next = std::upper_bound(segments_.begin(), segments_.end(), first); first < end; ++next) {
        const std::size_t last = next == segments_.end() ? end : std::min(*next, end);
        put(gradient.subspan(first, last - first));
        first = last;
      }
    }
  }

  void put(std::span<float> values) {
    for (; values.size() > longest_call; values = values.subspan(longest_call)) put(values.first(longest_call));
    if (values.empty()) return;
    if (type_ == Type::f32) {
      allreduce_->reduce(
          {type_, reinterpret_cast<std::byte*>(values.data()), values.size(), static_cast<float>(ranks_)}, stream_);
      return;
    }
    std::byte* const room = narrow_room(values.size() * bytes_of(type_));
    narrow(type_, values.data(), values.size(), static_cast<float>(ranks_), room, stream_);
    allreduce_->reduce({type_, room, values.size(), 1.0f}, stream_);
    widen(type_, room, values.size(), values.data(), stream_);
  }

  // The buffer of the 16-bit numbers. One is enough, since the stream reduces one part after the other.
  std::byte* narrow_room(std::size_t bytes) {
    if (narrow_bytes_ < bytes) {
      const std::size_t all = segments_.empty() ? 0 : segments_.back() * bytes_of(type_);
      bytes = std::max(bytes, std::min(all, longest_call * bytes_of(type_)));
      wait_for_stream(stream_, comms_, options_.timeout_s);
      narrow_.reset();
      if (required()) {
        narrow_ = registered_memory(bytes);
      } else {
        auto buffer = std::make_shared<cuda::Buffer>(cuda::device_buffer(bytes));
        narrow_ = {buffer, buffer->data()};
      }
      narrow_bytes_ = bytes;
    }
    return static_cast<std::byte*>(narrow_.get());
  }

  std::shared_ptr<void> registered_memory(std::size_t bytes) const {
    void* memory = nullptr;
    const ncclResult_t result = ncclMemAlloc(&memory, bytes);
    if (result != ncclSuccess) {
      const char* last = ncclGetLastError(nullptr);
      throw Error(failure("ncclMemAlloc", result, ncclGetErrorString(result), last != nullptr ? last : ""));
    }
    auto registrations = std::make_shared<std::vector<std::pair<NcclComm*, void*>>>();
    std::shared_ptr<void> owner(memory, [registrations](void* numbers) {
      for (const auto& [comm, registration] : *registrations) comm->deregister_memory(registration);
      ncclMemFree(numbers);
    });
    for (NcclComm* comm : comms_) {
      registrations->emplace_back(comm, comm->register_memory(memory, bytes));
    }
    return owner;
  }

  const Options options_;
  const Type type_;
  const int ranks_;
  int device_ = 0;
  const std::shared_ptr<ModelMemory> memory_;
  std::vector<std::size_t> segments_;
  const std::unique_ptr<GradientReduction> host_;
  const std::unique_ptr<Ranks> ordered_;
  // High priority: when the GPU has room, this stream's kernels go before those of the model.
  cuda::Stream stream_{"communication", true};
  cuda::Event ready_, last_;
  std::unique_ptr<Allreduce> allreduce_;  // destroyed before the streams that it uses
  const std::vector<NcclComm*> comms_;
  std::shared_ptr<void> narrow_;  // destroyed before the NCCL communicators that have registered it
  std::size_t narrow_bytes_ = 0;
};

// All of its work is in streams; the host only watches them.
class QueuedTransfer : public Transfer {
 public:
  QueuedTransfer(DeviceReduction& reduction, std::span<float> gradient, std::span<const Slice> parts)
      : reduction_(reduction) {
    reduction.record_model(ready_);
    ready_.make_wait(reduction.stream_);
    reduction.put(gradient, parts);
    done_.record(reduction.stream_);
    reduction.last_.record(reduction.stream_);
  }

  void wait_until_ready() override {
    const OnDevice device(reduction_.device_);
    wait_for_event(ready_.get());
  }

  void finish() override {
    const OnDevice device(reduction_.device_);
    wait_for_event(done_.get(), reduction_.comms_, reduction_.options_.timeout_s);
  }

 private:
  DeviceReduction& reduction_;
  cuda::Event ready_, done_;
};

// The host does a part of the work, in the thread that calls finish().
class MpiTransfer : public Transfer {
 public:
  MpiTransfer(DeviceReduction& reduction, std::span<float> gradient, std::span<const Slice> parts)
      : reduction_(reduction), gradient_(gradient), parts_(parts.begin(), parts.end()) {
    reduction.record_model(ready_);
  }

  void wait_until_ready() override {
    const OnDevice device(reduction_.device_);
    wait_for_event(ready_.get());
  }

  void finish() override {
    const OnDevice device(reduction_.device_);
    ready_.make_wait(reduction_.stream_);  // only now: earlier parts go through this stream until here
    reduction_.put(gradient_, parts_);
    wait_for_stream(reduction_.stream_, reduction_.comms_, reduction_.options_.timeout_s);
  }

 private:
  DeviceReduction& reduction_;
  const std::span<float> gradient_;
  const std::vector<Slice> parts_;
  cuda::Event ready_;
};

std::unique_ptr<Transfer> DeviceReduction::begin_mean(std::span<float> gradient, std::span<const Slice> parts) {
  if (gradient.empty() || !cuda::on_device(gradient.data())) return nullptr;
  if (queues()) return std::make_unique<QueuedTransfer>(*this, gradient, parts);
  return std::make_unique<MpiTransfer>(*this, gradient, parts);
}

}  // namespace

std::unique_ptr<GradientReduction> make_device_reduction(int ranks, std::unique_ptr<GradientReduction> host,
                                                         std::unique_ptr<Ranks> ordered,
                                                         std::unique_ptr<Allreduce> allreduce,
                                                         std::shared_ptr<ModelMemory> memory, const Options& options) {
  return std::make_unique<DeviceReduction>(ranks, std::move(host), std::move(ordered), std::move(allreduce),
                                           std::move(memory), options);
}

}  // namespace paceline::train::nccl
