// SPDX-License-Identifier: Apache-2.0
// Owners for objects of the CUDA runtime, and its errors as Error. Plain C++: only .cu files need nvcc.
//
// Every function that calls CUDA throws Error on failure, with the name of the call and a remedy.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <vector>

#include "trainer/backend/cuda/device_choice.h"

namespace paceline::train::cuda {

// Throws Error if `status` is not cudaSuccess. call: the source text of the call; the error shows its name.
void check(cudaError_t status, const char* call);
#define PACELINE_CHECK_CUDA(call) ::paceline::train::cuda::check((call), #call)

// A GPU that this process may use, in the order of CUDA_VISIBLE_DEVICES.
struct Device {
  int ordinal = 0;           // for cudaSetDevice
  std::string name;          // "NVIDIA H100 80GB HBM3"
  std::string uuid;          // 32 hexadecimal digits, the same in every process
  int major = 0, minor = 0;  // compute capability
  std::size_t memory = 0;    // bytes
  int multiprocessors = 0;
};

// Does not throw without a GPU or a driver: `devices` is then empty, and `reason` has CUDA's error message.
struct VisibleDevices {
  std::vector<Device> devices;
  std::string reason;
};
VisibleDevices visible_devices();

// Makes the device current for the calling thread. Throws Error if its compute capability is below 8.0.
void use_device(const Device& device);

// Memory, aligned to 256 bytes, not initialised unless stated. A size of 0 allocates nothing.
class Buffer {
 public:
  enum class Kind {
    device,  // GPU memory, which the host must copy
    pinned,  // host memory, from which the GPU copies without waiting for the CPU
  };
  Buffer() = default;
  Buffer(Kind kind, std::size_t bytes);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  template <typename T = void>
  T* data() const {
    return static_cast<T*>(data_);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  void free() noexcept;
  Kind kind_ = Kind::device;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};
inline Buffer device_buffer(std::size_t bytes) { return {Buffer::Kind::device, bytes}; }
inline Buffer pinned_buffer(std::size_t bytes) { return {Buffer::Kind::pinned, bytes}; }
Buffer zeroed_buffer(std::size_t bytes);  // in GPU memory. Waits until the zeros are there.

// Whether this is GPU memory, as opposed to the host's. Takes about 0.2 µs.
bool on_device(const void* pointer);

// A stream that does not wait for the legacy default stream, with a name for profilers.
class Stream {
 public:
  explicit Stream(const char* name, bool high_priority = false);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }
  operator cudaStream_t() const { return stream_; }
  void synchronize() const;  // the host waits for all queued work

 private:
  cudaStream_t stream_ = nullptr;
};

// A point in a stream.
class Event {
 public:
  explicit Event(bool timed = false);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  cudaEvent_t get() const { return event_; }
  void record(cudaStream_t stream);
  void make_wait(cudaStream_t stream) const;            // the stream waits for the last recorded point, if there is one
  void synchronize() const;                             // the host waits for it
  double milliseconds_since(const Event& start) const;  // both timed and reached

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace paceline::train::cuda
