#include "trainer/comm/gpu/device_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trainer/backend/cuda/runtime.h"
#include "trainer/comm/cuda_aware.h"
#include "trainer/comm/gpu/allreduce.h"
#include "trainer/comm/gpu/device_of_rank.h"
#include "trainer/comm/host_communicator.h"
#include "trainer/comm/ring_order.h"
#include "trainer/error.h"

namespace paceline::train::nccl {
namespace {

constexpr std::size_t longest_call = std::size_t{1} << 30;  // as comm/allreduce.h's

// Threads other than the main one begin on device 0, and what they ask must not end a capture of a graph elsewhere.
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

class DeviceCommunicator : public Communicator {
 public:
  // host: for all that is not on the GPU. ordered: the ranks of `allreduce`, where not those of `host`.
  DeviceCommunicator(std::unique_ptr<HostCommunicator> host, std::unique_ptr<Ranks> ordered,
                     std::unique_ptr<Allreduce> allreduce, const Options& options)
      : options_(options),
        type_(type_of(options.dtype)),
        host_(std::move(host)),
        ordered_(std::move(ordered)),
        allreduce_(std::move(allreduce)),
        libraries_(allreduce_->libraries()) {
    PACELINE_CHECK_CUDA(cudaGetDevice(&device_));
  }

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  int local_rank() const override { return host_->local_rank(); }
  int local_size() const override { return host_->local_size(); }
  std::size_t payload_bytes(std::size_t values) const override { return values * bytes_of(type_); }

  void set_segments(std::vector<std::size_t> offsets) override {
    segments_ = offsets;
    host_->set_segments(std::move(offsets));
  }

  void set_stream(void* stream) override { model_stream_ = static_cast<cudaStream_t>(stream); }

  void allreduce_mean(std::span<float> values) override { allreduce_gradient(values, 0, values.size()); }

  void allreduce_gradient(std::span<float> gradient, std::size_t first, std::size_t count) override {
    if (count == 0 || (size() == 1 && type_ == Type::f32)) return;  // its own mean
    if (!cuda::on_device(gradient.data())) return host_->allreduce_gradient(gradient, first, count);
    const Slice part{first, count};
    record_model(ready_);
    ready_.make_wait(stream_);
    put(gradient, {&part, 1});
    wait_for_stream(stream_, libraries_, options_.timeout_s);
  }

  std::unique_ptr<Transfer> begin_mean(std::span<float> gradient, std::span<const Slice> parts) override;
  bool queues() const override { return !allreduce_->uses_mpi(); }
  void join() override {
    if (model_stream_ == nullptr) return wait_for_stream(stream_, libraries_, options_.timeout_s);
    last_.make_wait(model_stream_);
  }

  std::shared_ptr<float> gradient_memory(std::size_t values) const override {
    const std::size_t bytes = std::max<std::size_t>(values, 1) * sizeof(float);
    if (wants_gradients()) {
      auto owner = registered_memory(bytes);
      PACELINE_CHECK_CUDA(cudaMemset(owner.get(), 0, bytes));
      PACELINE_CHECK_CUDA(cudaStreamSynchronize(nullptr));  // no other stream waits for it
      return std::static_pointer_cast<float>(owner);
    }
    auto buffer = std::make_shared<cuda::Buffer>(cuda::managed_buffer(bytes));  // zeroed; the host can read it, too
    return {buffer, buffer->data<float>()};
  }

  bool wants_gradients() const override { return options_.registered && !libraries_.empty(); }

  void copy(std::span<const float> from, std::span<float> to) const override {
    PACELINE_CHECK_CUDA(cudaStreamSynchronize(model_stream_));
    PACELINE_CHECK_CUDA(cudaMemcpy(to.data(), from.data(), from.size_bytes(), cudaMemcpyDefault));
    PACELINE_CHECK_CUDA(cudaStreamSynchronize(nullptr));  // from pageable memory it may return before
  }

  void reduce_sum(std::span<float> values, int root) override {
    in_host_memory(values, [&](std::span<float> numbers) { host_->reduce_sum(numbers, root); });
  }
  void broadcast(std::span<float> values, int root) override {
    in_host_memory(values, [&](std::span<float> numbers) { host_->broadcast(numbers, root); });
  }

  void wait_for_all() override { host_->wait_for_all(); }
  // Weights and gradients are the host's to read, but not each transport's of an MPI library that knows no CUDA: what
  // the kernel or a network card reads in the host's place must not be pages that a GPU takes back.
  void send(std::span<const std::byte> bytes, int to) override {
    if (bytes.empty() || !cuda::on_device(bytes.data())) return host_->send(bytes, to);
    std::vector<std::byte> numbers(bytes.size());
    PACELINE_CHECK_CUDA(cudaMemcpy(numbers.data(), bytes.data(), bytes.size(), cudaMemcpyDefault));
    host_->send(numbers, to);
  }
  void receive(std::span<std::byte> bytes, int from) override {
    if (bytes.empty() || !cuda::on_device(bytes.data())) return host_->receive(bytes, from);
    std::vector<std::byte> numbers(bytes.size());
    host_->receive(numbers, from);
    PACELINE_CHECK_CUDA(cudaMemcpy(bytes.data(), numbers.data(), bytes.size(), cudaMemcpyDefault));
    PACELINE_CHECK_CUDA(cudaStreamSynchronize(nullptr));  // from pageable memory it may return before
  }
  std::optional<int> sender() override { return host_->sender(); }
  void allgather(std::span<const std::byte> own, std::span<std::byte> all) override {
    if (own.empty() || !cuda::on_device(own.data())) return host_->allgather(own, all);
    std::vector<std::byte> numbers(own.size());
    PACELINE_CHECK_CUDA(cudaMemcpy(numbers.data(), own.data(), own.size(), cudaMemcpyDefault));
    host_->allgather(numbers, all);
  }
  void allreduce_sum(std::span<double> values) override { host_->allreduce_sum(values); }
  void broadcast(std::span<std::uint64_t> values, int root) override { host_->broadcast(values, root); }
  void broadcast(std::span<std::byte> values, int root) override { host_->broadcast(values, root); }

 private:
  friend class QueuedTransfer;
  friend class MpiTransfer;

  // Comes when the model's stream has come to where it is now; without one, what is handed over is there.
  void record_model(cuda::Event& ready) const {
    if (model_stream_ != nullptr) ready.record(model_stream_);
  }

  // Puts the means into the stream; with MPI, makes them.
  void put(std::span<float> gradient, std::span<const Slice> parts) {
    for (const Slice& part : parts) {
      if (!allreduce_->by_segment()) {
        put(gradient.subspan(part.first, part.count));
        continue;
      }
      // Positions of parameters within the part, and its end.
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
          {type_, reinterpret_cast<std::byte*>(values.data()), values.size(), static_cast<float>(size())}, stream_);
      return;
    }
    std::byte* const room = narrow_room(values.size() * bytes_of(type_));
    narrow(type_, values.data(), values.size(), static_cast<float>(size()), room, stream_);
    allreduce_->reduce({type_, room, values.size(), 1.0f}, stream_);
    widen(type_, room, values.size(), values.data(), stream_);
  }

  // Where the 16-bit numbers are; one after another, as the stream does them.
  std::byte* narrow_room(std::size_t bytes) {
    if (narrow_bytes_ < bytes) {
      const std::size_t all = segments_.empty() ? 0 : segments_.back() * bytes_of(type_);
      bytes = std::max(bytes, std::min(all, longest_call * bytes_of(type_)));
      wait_for_stream(stream_, libraries_, options_.timeout_s);
      narrow_.reset();
      if (wants_gradients()) {
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
    auto registrations = std::make_shared<std::vector<std::pair<Library*, void*>>>();
    std::shared_ptr<void> owner(memory, [registrations](void* numbers) {
      for (const auto& [library, registration] : *registrations) library->deregister_memory(registration);
      ncclMemFree(numbers);
    });
    for (Library* library : libraries_) {
      registrations->emplace_back(library, library->register_memory(memory, bytes));
    }
    return owner;
  }

  // For what happens seldom: in place where the host can reach the values, else by copies.
  template <typename Work>
  void in_host_memory(std::span<float> values, Work work) {
    if (values.empty() || !cuda::on_device(values.data())) return work(values);
    std::vector<float> numbers(values.size());
    copy(values, numbers);
    work(std::span(numbers));
    copy(numbers, values);
  }

  const Options options_;
  const Type type_;
  int device_ = 0;
  cudaStream_t model_stream_ = nullptr;
  std::vector<std::size_t> segments_;
  std::unique_ptr<HostCommunicator> host_;
  std::unique_ptr<Ranks> ordered_;
  // Before a bucket's kernels other work has filled the GPU: this stream's go first when there is room.
  cuda::Stream stream_{"communication", true};
  cuda::Event ready_, last_;
  std::unique_ptr<Allreduce> allreduce_;  // ends before the streams that it uses
  const std::vector<Library*> libraries_;
  std::shared_ptr<void> narrow_;  // ends before the libraries that have registered it
  std::size_t narrow_bytes_ = 0;
};

// All of it is in streams; what is left is to watch.
class QueuedTransfer : public Transfer {
 public:
  QueuedTransfer(DeviceCommunicator& communicator, std::span<float> gradient, std::span<const Slice> parts)
      : communicator_(communicator) {
    communicator.record_model(ready_);
    ready_.make_wait(communicator.stream_);
    communicator.put(gradient, parts);
    done_.record(communicator.stream_);
    communicator.last_.record(communicator.stream_);
  }

  void wait_until_ready() override {
    const OnDevice device(communicator_.device_);
    wait_for_event(ready_.get());
  }

  void finish() override {
    const OnDevice device(communicator_.device_);
    wait_for_event(done_.get(), communicator_.libraries_, communicator_.options_.timeout_s);
  }

 private:
  DeviceCommunicator& communicator_;
  cuda::Event ready_, done_;
};

// The host has to take part, in the thread that calls finish().
class MpiTransfer : public Transfer {
 public:
  MpiTransfer(DeviceCommunicator& communicator, std::span<float> gradient, std::span<const Slice> parts)
      : communicator_(communicator), gradient_(gradient), parts_(parts.begin(), parts.end()) {
    communicator.record_model(ready_);
  }

  void wait_until_ready() override {
    const OnDevice device(communicator_.device_);
    wait_for_event(ready_.get());
  }

  void finish() override {
    const OnDevice device(communicator_.device_);
    ready_.make_wait(communicator_.stream_);  // not before: what came earlier goes through this stream now
    communicator_.put(gradient_, parts_);
    wait_for_stream(communicator_.stream_, communicator_.libraries_, communicator_.options_.timeout_s);
  }

 private:
  DeviceCommunicator& communicator_;
  const std::span<float> gradient_;
  const std::vector<Slice> parts_;
  cuda::Event ready_;
};

std::unique_ptr<Transfer> DeviceCommunicator::begin_mean(std::span<float> gradient, std::span<const Slice> parts) {
  if (gradient.empty() || !cuda::on_device(gradient.data())) return nullptr;
  if (queues()) return std::make_unique<QueuedTransfer>(*this, gradient, parts);
  return std::make_unique<MpiTransfer>(*this, gradient, parts);
}

std::unique_ptr<Allreduce> make_by_name(const std::string& name, const Ranks& ranks, const Options& options) {
  if (name == "pure_nccl" || name == "single_node") return make_pure_nccl(ranks, options);
  if (name == "hierarchical") return make_hierarchical(ranks, options);
  if (name == "two_dimensional") return make_two_dimensional(ranks, options);
  if (name == "non_cuda_aware") return make_non_cuda_aware(ranks, options);
  const bool of_the_library = name == "mpi" || name == "naive" || name == "flat";
  if (of_the_library && options.dtype == "f32" && cuda_awareness().yes) return make_cuda_aware(name, ranks);
  return make_staged(name, ranks, options);
}

}  // namespace

std::unique_ptr<Communicator> make_device_communicator(const std::string& name, const Options& options,
                                                       std::unique_ptr<Ranks> ranks) {
  const std::vector<int> order = parse_ring_order(options.ring_order, ranks->size);
  if (name == "single_node" && ranks->hosts > 1) {
    throw Error(fmt::format("communicator single_node: the {} ranks are on {} hosts; take another, e.g. pure_nccl",
                            ranks->size, ranks->hosts),
                Status::usage);
  }
  if (uses_nccl(name)) check_placement(name, placements(*ranks));
  std::unique_ptr<Ranks> ordered = order.empty() ? nullptr : in_ring_order(*ranks, order);
  std::unique_ptr<Allreduce> allreduce = make_by_name(name, ordered ? *ordered : *ranks, options);
  auto host = make_host_communicator("mpi", options.dtype, std::move(ranks));
  return std::make_unique<DeviceCommunicator>(std::move(host), std::move(ordered), std::move(allreduce), options);
}

}  // namespace paceline::train::nccl
