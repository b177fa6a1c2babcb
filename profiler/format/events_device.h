// SPDX-License-Identifier: Apache-2.0
// The values of events: CUDA and NCCL. See events.h.
#pragma once

#include <cstdint>

#include "profiler/format/event.h"

namespace paceline::format::events {

// CUDA. Durations are in ticks. Stream, kernel and graph 0: none. `correlation` ties a call to its work on the device.

struct CudaFunction {
  static constexpr EventType type = EventType::cuda_function;
  std::uint16_t function = 0;
  std::uint16_t api = 0;  // 0 = runtime, 1 = driver
  std::uint32_t name = 0;
};

struct CudaStream {
  static constexpr EventType type = EventType::cuda_stream;
  std::uint32_t stream = 0;  // from 1 on
  std::uint32_t name = 0;
  std::uint32_t device = 0;
  std::uint32_t context = 0;
  std::uint32_t number = 0;  // CUPTI's
  std::uint32_t unused = 0;
};

// A kernel with the shape of its launch.
struct CudaKernel {
  static constexpr EventType type = EventType::cuda_kernel;
  std::uint32_t kernel = 0;  // from 1 on
  std::uint32_t name = 0;
  std::uint32_t grid_x = 0;
  std::uint16_t grid_y = 0;
  std::uint16_t grid_z = 0;
  std::uint16_t block_x = 0;
  std::uint16_t block_y = 0;
  std::uint16_t block_z = 0;
  std::uint16_t registers = 0;
  std::uint32_t static_shared = 0;   // bytes
  std::uint32_t dynamic_shared = 0;  // bytes
  std::uint64_t local_bytes = 0;     // of a thread
};

struct CudaCall {
  static constexpr EventType type = EventType::cuda_call;
  std::uint16_t function = 0;
  std::uint16_t api = 0;
  std::uint32_t thread = 0;  // the system's
  std::uint64_t duration = 0;
  std::uint32_t correlation = 0;
  std::uint32_t result = 0;
};

struct CudaKernelRun {
  static constexpr EventType type = EventType::cuda_kernel_run;
  std::uint32_t kernel = 0;
  std::uint32_t stream = 0;
  std::uint64_t duration = 0;
  std::uint32_t correlation = 0;
  std::uint32_t graph = 0;
};

struct CudaCopy {
  static constexpr EventType type = EventType::cuda_copy;
  std::uint32_t stream = 0;
  std::uint8_t kind = 0;  // CUPTI's numbers, as `from` and `to`
  std::uint8_t from = 0;
  std::uint8_t to = 0;
  std::uint8_t unused = 0;
  std::uint64_t duration = 0;
  std::uint32_t correlation = 0;
  std::uint32_t graph = 0;
  std::uint64_t bytes = 0;
  std::uint32_t from_device = 0;
  std::uint32_t to_device = 0;
};

struct CudaSet {
  static constexpr EventType type = EventType::cuda_set;
  std::uint32_t stream = 0;
  std::uint32_t value = 0;
  std::uint64_t duration = 0;
  std::uint32_t correlation = 0;
  std::uint32_t graph = 0;
  std::uint64_t bytes = 0;
  std::uint64_t memory_kind = 0;
};

struct CudaWait {
  static constexpr EventType type = EventType::cuda_wait;
  std::uint32_t stream = 0;
  std::uint32_t kind = 0;  // CUPTI's number
  std::uint64_t duration = 0;
  std::uint32_t correlation = 0;
  std::uint32_t event = 0;
};

struct CudaGraph {
  static constexpr EventType type = EventType::cuda_graph;
  std::uint32_t stream = 0;
  std::uint32_t graph = 0;
  std::uint64_t duration = 0;
  std::uint32_t correlation = 0;
  std::uint32_t unused = 0;
};

struct CudaOverhead {
  static constexpr EventType type = EventType::cuda_overhead;
  std::uint32_t kind = 0;  // CUPTI's number
  std::uint32_t thread = 0;
  std::uint64_t duration = 0;
  std::uint64_t correlation = 0;
};

struct CudaClock {
  static constexpr EventType type = EventType::cuda_clock;
  std::uint64_t cupti_ns = 0;  // CUPTI's clock at the head's ticks
  std::uint64_t width = 0;     // ticks that reading it took
  std::uint64_t unused = 0;
};

struct CudaHandle {
  static constexpr EventType type = EventType::cuda_handle;
  std::uint32_t context = 0;  // CUPTI's number
  std::uint32_t stream = 0;   // CUPTI's number; all ones: the context itself
  std::uint64_t handle = 0;   // the driver's, by which NVTX names it
  std::uint64_t unused = 0;
};

// NCCL. `operation` is a name: "FUNCTION DATATYPE ALGORITHM PROTOCOL CHANNELS WARPS".

struct NcclCollective {
  static constexpr EventType type = EventType::nccl_collective;
  std::uint32_t operation = 0;
  std::uint32_t communicator = 0;
  std::uint64_t bytes = 0;
  std::uint32_t sequence = 0;  // by function
  std::int32_t root = 0;
  std::uint64_t id = 0;
  std::uint64_t group = 0;  // id of the nccl_call that enqueued it
};

// A send or a receive.
struct NcclPeer {
  static constexpr EventType type = EventType::nccl_peer;
  std::uint32_t operation = 0;
  std::uint32_t communicator = 0;
  std::uint64_t bytes = 0;
  std::int32_t peer = 0;
  std::uint32_t channels = 0;
  std::uint64_t id = 0;
  std::uint64_t group = 0;
};

struct NcclApiCall {
  static constexpr EventType type = EventType::nccl_call;
  std::uint32_t operation = 0;
  std::uint32_t communicator = 0;
  std::uint64_t bytes = 0;
  NcclCall kind = NcclCall::group_api;
  std::int32_t root = 0;
  std::uint64_t id = 0;
  std::uint64_t captured = 0;  // 1 = into a graph
};

// One channel of a kernel begins or ends. The ticks are those of the report.
struct NcclChannel {
  static constexpr EventType type = EventType::nccl_channel;
  std::uint64_t work = 0;       // id of the collective or peer
  std::uint64_t device_ns = 0;  // by the device's clock
  std::uint32_t channel = 0;
  std::uint32_t edge = 0;  // 0 = begin, 1 = end
};

struct NcclProxy {
  static constexpr EventType type = EventType::nccl_proxy;
  std::uint16_t channel = 0;
  std::uint16_t sends = 0;  // 1 = it sends, 0 = it receives
  std::int32_t peer = 0;
  std::uint64_t work = 0;  // id of the collective or peer
  std::uint32_t steps = 0;
  std::uint32_t chunk_bytes = 0;
  std::uint64_t id = 0;
  std::uint64_t unused = 0;
};

// Ends the NCCL event with that id, on any track.
struct NcclEnd {
  static constexpr EventType type = EventType::nccl_end;
  std::uint64_t id = 0;
};

}  // namespace paceline::format::events
