// The values of events: CUDA and NCCL. See events.h.
#pragma once

#include <cstdint>
#include <tuple>

#include "profiler/format/packing.h"

namespace paceline::format::events {

// CUDA. Durations are in ticks. Stream, kernel and graph 0: none. `correlation` ties a call to its work on the device.

struct CudaFunction {
  static constexpr EventType type = EventType::cuda_function;
  std::uint16_t function = 0;
  std::uint16_t api = 0;  // 0 = runtime, 1 = driver
  std::uint32_t name = 0;
  static constexpr auto values() {
    return std::tuple(low(&CudaFunction::function, 0), low(&CudaFunction::api, 16), low(&CudaFunction::name, 32));
  }
};

struct CudaStream {
  static constexpr EventType type = EventType::cuda_stream;
  std::uint32_t stream = 0;  // from 1 on
  std::uint32_t name = 0;
  std::uint32_t device = 0;
  std::uint32_t context = 0;
  std::uint32_t number = 0;  // CUPTI's
  static constexpr auto values() {
    return std::tuple(low(&CudaStream::stream, 0), low(&CudaStream::name, 32), ext_high(&CudaStream::device, 0),
                      ext_high(&CudaStream::context, 32), ext_low(&CudaStream::number, 0));
  }
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
  static constexpr auto values() {
    return std::tuple(low(&CudaKernel::kernel, 0), low(&CudaKernel::name, 32), ext_high(&CudaKernel::grid_x, 0),
                      ext_high(&CudaKernel::grid_y, 32), ext_high(&CudaKernel::grid_z, 48),
                      ext_low(&CudaKernel::block_x, 0), ext_low(&CudaKernel::block_y, 16),
                      ext_low(&CudaKernel::block_z, 32), ext_low(&CudaKernel::registers, 48),
                      ext2_high(&CudaKernel::static_shared, 0), ext2_high(&CudaKernel::dynamic_shared, 32),
                      ext2_low(&CudaKernel::local_bytes, 0));
  }
};

struct CudaCall {
  static constexpr EventType type = EventType::cuda_call;
  std::uint16_t function = 0;
  std::uint16_t api = 0;
  std::uint32_t thread = 0;  // the system's
  std::uint64_t duration = 0;
  std::uint32_t correlation = 0;
  std::uint32_t result = 0;
  static constexpr auto values() {
    return std::tuple(low(&CudaCall::function, 0), low(&CudaCall::api, 16), low(&CudaCall::thread, 32),
                      ext_high(&CudaCall::duration, 0), ext_low(&CudaCall::correlation, 0),
                      ext_low(&CudaCall::result, 32));
  }
};

struct CudaKernelRun {
  static constexpr EventType type = EventType::cuda_kernel_run;
  std::uint32_t kernel = 0;
  std::uint32_t stream = 0;
  std::uint64_t duration = 0;
  std::uint32_t correlation = 0;
  std::uint32_t graph = 0;
  static constexpr auto values() {
    return std::tuple(low(&CudaKernelRun::kernel, 0), low(&CudaKernelRun::stream, 32),
                      ext_high(&CudaKernelRun::duration, 0), ext_low(&CudaKernelRun::correlation, 0),
                      ext_low(&CudaKernelRun::graph, 32));
  }
};

struct CudaCopy {
  static constexpr EventType type = EventType::cuda_copy;
  std::uint32_t stream = 0;
  std::uint8_t kind = 0;  // CUPTI's numbers, as `from` and `to`
  std::uint8_t from = 0;
  std::uint8_t to = 0;
  std::uint64_t duration = 0;
  std::uint32_t correlation = 0;
  std::uint32_t graph = 0;
  std::uint64_t bytes = 0;
  std::uint32_t from_device = 0;
  std::uint32_t to_device = 0;
  static constexpr auto values() {
    return std::tuple(low(&CudaCopy::stream, 0), low(&CudaCopy::kind, 32), low(&CudaCopy::from, 40),
                      low(&CudaCopy::to, 48), ext_high(&CudaCopy::duration, 0), ext_low(&CudaCopy::correlation, 0),
                      ext_low(&CudaCopy::graph, 32), ext2_high(&CudaCopy::bytes, 0),
                      ext2_low(&CudaCopy::from_device, 0), ext2_low(&CudaCopy::to_device, 32));
  }
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
  static constexpr auto values() {
    return std::tuple(low(&CudaSet::stream, 0), low(&CudaSet::value, 32), ext_high(&CudaSet::duration, 0),
                      ext_low(&CudaSet::correlation, 0), ext_low(&CudaSet::graph, 32), ext2_high(&CudaSet::bytes, 0),
                      ext2_low(&CudaSet::memory_kind, 0));
  }
};

struct CudaWait {
  static constexpr EventType type = EventType::cuda_wait;
  std::uint32_t stream = 0;
  std::uint32_t kind = 0;  // CUPTI's number
  std::uint64_t duration = 0;
  std::uint32_t correlation = 0;
  std::uint32_t event = 0;
  static constexpr auto values() {
    return std::tuple(low(&CudaWait::stream, 0), low(&CudaWait::kind, 32), ext_high(&CudaWait::duration, 0),
                      ext_low(&CudaWait::correlation, 0), ext_low(&CudaWait::event, 32));
  }
};

struct CudaGraph {
  static constexpr EventType type = EventType::cuda_graph;
  std::uint32_t stream = 0;
  std::uint32_t graph = 0;
  std::uint64_t duration = 0;
  std::uint32_t correlation = 0;
  static constexpr auto values() {
    return std::tuple(low(&CudaGraph::stream, 0), low(&CudaGraph::graph, 32), ext_high(&CudaGraph::duration, 0),
                      ext_low(&CudaGraph::correlation, 0));
  }
};

struct CudaOverhead {
  static constexpr EventType type = EventType::cuda_overhead;
  std::uint32_t kind = 0;  // CUPTI's number
  std::uint32_t thread = 0;
  std::uint64_t duration = 0;
  std::uint64_t correlation = 0;
  static constexpr auto values() {
    return std::tuple(low(&CudaOverhead::kind, 0), low(&CudaOverhead::thread, 32), ext_high(&CudaOverhead::duration, 0),
                      ext_low(&CudaOverhead::correlation, 0));
  }
};

struct CudaClock {
  static constexpr EventType type = EventType::cuda_clock;
  std::uint64_t cupti_ns = 0;  // CUPTI's clock at the head's ticks
  std::uint64_t width = 0;     // ticks that reading it took
  static constexpr auto values() { return std::tuple(low(&CudaClock::cupti_ns, 0), ext_high(&CudaClock::width, 0)); }
};

struct CudaHandle {
  static constexpr EventType type = EventType::cuda_handle;
  std::uint32_t context = 0;  // CUPTI's number
  std::uint32_t stream = 0;   // CUPTI's number; all ones: the context itself
  std::uint64_t handle = 0;   // the driver's, by which NVTX names it
  static constexpr auto values() {
    return std::tuple(low(&CudaHandle::context, 0), low(&CudaHandle::stream, 32), ext_high(&CudaHandle::handle, 0));
  }
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
  static constexpr auto values() {
    return std::tuple(low(&NcclCollective::operation, 0), low(&NcclCollective::communicator, 32),
                      ext_high(&NcclCollective::bytes, 0), ext_low(&NcclCollective::sequence, 0),
                      ext_low(&NcclCollective::root, 32), ext2_high(&NcclCollective::id, 0),
                      ext2_low(&NcclCollective::group, 0));
  }
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
  static constexpr auto values() {
    return std::tuple(low(&NcclPeer::operation, 0), low(&NcclPeer::communicator, 32), ext_high(&NcclPeer::bytes, 0),
                      ext_low(&NcclPeer::peer, 0), ext_low(&NcclPeer::channels, 32), ext2_high(&NcclPeer::id, 0),
                      ext2_low(&NcclPeer::group, 0));
  }
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
  static constexpr auto values() {
    return std::tuple(low(&NcclApiCall::operation, 0), low(&NcclApiCall::communicator, 32),
                      ext_high(&NcclApiCall::bytes, 0), ext_low(&NcclApiCall::kind, 0), ext_low(&NcclApiCall::root, 32),
                      ext2_high(&NcclApiCall::id, 0), ext2_low(&NcclApiCall::captured, 0));
  }
};

// One channel of a kernel begins or ends. The ticks are those of the report.
struct NcclChannel {
  static constexpr EventType type = EventType::nccl_channel;
  std::uint64_t work = 0;       // id of the collective or peer
  std::uint64_t device_ns = 0;  // by the device's clock
  std::uint32_t channel = 0;
  std::uint32_t edge = 0;  // 0 = begin, 1 = end
  static constexpr auto values() {
    return std::tuple(low(&NcclChannel::work, 0), ext_high(&NcclChannel::device_ns, 0),
                      ext_low(&NcclChannel::channel, 0), ext_low(&NcclChannel::edge, 32));
  }
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
  static constexpr auto values() {
    return std::tuple(low(&NcclProxy::channel, 0), low(&NcclProxy::sends, 16), low(&NcclProxy::peer, 32),
                      ext_high(&NcclProxy::work, 0), ext_low(&NcclProxy::steps, 0),
                      ext_low(&NcclProxy::chunk_bytes, 32), ext2_high(&NcclProxy::id, 0));
  }
};

// Ends the NCCL event with that id, on any track.
struct NcclEnd {
  static constexpr EventType type = EventType::nccl_end;
  std::uint64_t id = 0;
  static constexpr auto values() { return std::tuple(low(&NcclEnd::id, 0)); }
};

}  // namespace paceline::format::events
