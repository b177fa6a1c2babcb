// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cuda/runtime.h"

#include <nvtx3/nvToolsExtCudaRt.h>

#include <string_view>
#include <utility>

#include "trainer/core/error.h"

namespace paceline::train::cuda {

namespace {

const char* remedy(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
      return "take a smaller ‹batch-size›, or end what else uses this GPU (nvidia-smi lists it)";
    case cudaErrorInsufficientDriver:
    case cudaErrorNoKernelImageForDevice:
      return CUDART_VERSION >= 13000
                 ? "this build needs a driver for CUDA 13 (580 or newer) and compute capability 8.0; "
                   "build with CUDA 12 for an older one, or take ‹device› cpu"
                 : "this build needs a driver for CUDA 12 (525 or newer) and compute capability 8.0; "
                   "or take ‹device› cpu";
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
      return "see nvidia-smi and CUDA_VISIBLE_DEVICES, or take ‹device› cpu";
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorMisalignedAddress:
      return "an error of this program: compute-sanitizer in front of it names the kernel";
    default:
      return "if nvidia-smi shows the GPU in order, this is an error of this program";
  }
}

// Shows "cudaMalloc(&p, n)" as "cudaMalloc".
std::string name_in(std::string_view call) { return std::string(call.substr(0, call.find('('))); }

}  // namespace

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw Error("CUDA: " + name_in(call), std::string(cudaGetErrorString(status)) + " (" + cudaGetErrorName(status) + ")",
              remedy(status));
}

VisibleDevices visible_devices() {
  VisibleDevices visible;
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess) {
    visible.reason = cudaGetErrorString(status);
    cudaGetLastError();  // clears the error
    return visible;
  }
  if (count == 0) visible.reason = "no CUDA-capable device is detected";
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties{};
    PACELINE_CHECK_CUDA(cudaGetDeviceProperties(&properties, i));
    visible.devices.push_back({i, properties.name, uuid_of_device(i, properties.uuid.bytes), properties.major,
                               properties.minor, properties.totalGlobalMem, properties.multiProcessorCount});
  }
  return visible;
}

void use_device(const Device& device) {
  if (device.major < 8) {
    throw Error("‹device› cuda",
                device.name + " has compute capability " + std::to_string(device.major) + "." +
                    std::to_string(device.minor) + ", and this program needs 8.0 (Ampere) or newer",
                "take ‹device› cpu", Status::usage);
  }
  PACELINE_CHECK_CUDA(cudaSetDevice(device.ordinal));
  nvtxNameCudaDeviceA(device.ordinal, device.name.c_str());
}

Buffer::Buffer(Kind kind, std::size_t bytes) : kind_(kind), bytes_(bytes) {
  if (bytes == 0) return;
  switch (kind) {
    case Kind::device:
      PACELINE_CHECK_CUDA(cudaMalloc(&data_, bytes));
      break;
    case Kind::pinned:
      PACELINE_CHECK_CUDA(cudaHostAlloc(&data_, bytes, cudaHostAllocDefault));
      break;
  }
}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(kind_, other.kind_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() { free(); }

void Buffer::free() noexcept {
  if (data_ == nullptr) return;
  if (kind_ == Kind::pinned)
    cudaFreeHost(data_);
  else
    cudaFree(data_);
  data_ = nullptr;
}

Buffer zeroed_buffer(std::size_t bytes) {
  Buffer buffer = device_buffer(bytes);
  PACELINE_CHECK_CUDA(cudaMemset(buffer.data(), 0, bytes));
  PACELINE_CHECK_CUDA(cudaStreamSynchronize(nullptr));  // other streams do not wait for the default one
  return buffer;
}

bool on_device(const void* pointer) {
  cudaPointerAttributes attributes{};
  PACELINE_CHECK_CUDA(cudaPointerGetAttributes(&attributes, pointer));
  return attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
}

Stream::Stream(const char* name, bool high_priority) {
  int lowest = 0, highest = 0;
  PACELINE_CHECK_CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  PACELINE_CHECK_CUDA(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, high_priority ? highest : lowest));
  nvtxNameCudaStreamA(stream_, name);
}

Stream::~Stream() { cudaStreamDestroy(stream_); }

void Stream::synchronize() const { PACELINE_CHECK_CUDA(cudaStreamSynchronize(stream_)); }

Event::Event(bool timed) {
  PACELINE_CHECK_CUDA(cudaEventCreateWithFlags(&event_, timed ? cudaEventDefault : cudaEventDisableTiming));
}

Event::~Event() { cudaEventDestroy(event_); }

void Event::record(cudaStream_t stream) { PACELINE_CHECK_CUDA(cudaEventRecord(event_, stream)); }

void Event::make_wait(cudaStream_t stream) const { PACELINE_CHECK_CUDA(cudaStreamWaitEvent(stream, event_, 0)); }

void Event::synchronize() const { PACELINE_CHECK_CUDA(cudaEventSynchronize(event_)); }

double Event::milliseconds_since(const Event& start) const {
  float milliseconds = 0;
  PACELINE_CHECK_CUDA(cudaEventElapsedTime(&milliseconds, start.event_, event_));
  return milliseconds;
}

}  // namespace paceline::train::cuda
