// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/cupti/transcoder.h"

#include <string.h>

#include <initializer_list>

#include "profiler/format/event.h"
#include "profiler/format/layout.h"
#include "profiler/inject/cupti/records.h"
#include "profiler/inject/sink_events.h"

namespace paceline::inject::cupti {
namespace {

// "cudaLaunchKernel_v7000", "cudaLaunchKernel_ptsz_v7000" -> "cudaLaunchKernel": the number is the version of the
// interface, and ptsz selects the default stream.
std::size_t plain_length(const char* name) {
  std::size_t length = strlen(name);
  std::size_t digits = length;
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  if (digits < length && digits > 2 && name[digits - 1] == 'v' && name[digits - 2] == '_') length = digits - 2;
  for (const char* ending : {"_ptsz", "_ptds"}) {
    const std::size_t size = strlen(ending);
    if (length > size && memcmp(name + length - size, ending, size) == 0) length -= size;
  }
  return length;
}

}  // namespace

Transcoder::Transcoder(const paceline_event_sink_v1& sink, const Timestamps& timestamps, CallName call_name)
    : sink_(sink), timestamps_(timestamps), call_name_(call_name) {}

void Transcoder::leave_out(bool driver, std::uint32_t call) {
  if (call < most_calls) calls_[driver ? 1 : 0][call] = 2;
}

bool Transcoder::span(std::uint64_t start, std::uint64_t end, std::uint64_t& at, std::uint64_t& duration) const {
  if (start == 0 || end < start) {
    sink_.dropped(static_cast<std::uint32_t>(format::DropCause::device), 1);
    return false;
  }
  at = timestamps_.ticks(start);
  const std::uint64_t until = timestamps_.ticks(end);
  duration = until > at ? until - at : 0;
  return true;
}

void Transcoder::define_stream(std::uint32_t number, std::uint32_t device, std::uint32_t context, std::uint32_t stream,
                               std::uint32_t name) {
  define_in(sink_,
            events::CudaStream{.stream = number, .name = name, .device = device, .context = context, .number = stream});
}

// Contexts are numbered in the process, so context and stream together identify a stream. Programs have some ten
// streams, so the search walks from the latest one found.
std::uint32_t Transcoder::stream_number(std::uint32_t device, std::uint32_t context, std::uint32_t stream) {
  if (stream == CUPTI_INVALID_STREAM_ID) return 0;
  for (std::uint32_t i = 0; i < stream_count_; ++i) {
    if (streams_[i].context == context && streams_[i].stream == stream) return streams_[i].number;
  }
  if (stream_count_ == most_streams) return 0;
  const std::uint32_t number = stream_count_ + 1;
  streams_[stream_count_++] = {context, stream, number};
  define_stream(number, device, context, stream, 0);
  return number;
}

std::uint32_t Transcoder::kernel_number(const KernelKey& key) {
  std::uint64_t mixed = 0;
  const auto* parts = reinterpret_cast<const std::uint32_t*>(&key);
  static_assert(sizeof key % 4 == 0);
  for (std::size_t i = 0; i < sizeof key / 4; ++i) {
    mixed = (mixed ^ parts[i]) * 0x9e3779b97f4a7c15;
    mixed ^= mixed >> 29;
  }
  std::uint32_t at = static_cast<std::uint32_t>(mixed % kernel_places);
  for (; kernels_[at].number != 0; at = (at + 1) % kernel_places) {
    if (memcmp(&kernels_[at].key, &key, sizeof key) == 0) return kernels_[at].number;
  }
  const auto number = ++kernel_count_;
  // If the table is full, a kernel is defined again each time. This costs bytes but loses nothing.
  if (kernel_count_ <= kernel_places / 2) kernels_[at] = {key, number};
  define_in(sink_, events::CudaKernel{.kernel = number,
                                      .name = key.name,
                                      .grid_x = static_cast<std::uint32_t>(key.grid[0]),
                                      .grid_y = static_cast<std::uint16_t>(key.grid[1]),
                                      .grid_z = static_cast<std::uint16_t>(key.grid[2]),
                                      .block_x = static_cast<std::uint16_t>(key.block[0]),
                                      .block_y = static_cast<std::uint16_t>(key.block[1]),
                                      .block_z = static_cast<std::uint16_t>(key.block[2]),
                                      .registers = static_cast<std::uint16_t>(key.registers),
                                      .static_shared = static_cast<std::uint32_t>(key.static_shared),
                                      .dynamic_shared = static_cast<std::uint32_t>(key.dynamic_shared),
                                      .local_bytes = key.local});
  return number;
}

void Transcoder::take_call(const CUpti_ActivityAPI& call) {
  const bool driver = call.kind == CUPTI_ACTIVITY_KIND_DRIVER;
  if (call.cbid >= most_calls) return;
  std::uint8_t& known = calls_[driver ? 1 : 0][call.cbid];
  if (known == 2) return;
  std::uint64_t at, duration;
  if (!span(call.start, call.end, at, duration)) return;
  const auto function = static_cast<std::uint16_t>(call.cbid);
  const std::uint16_t api = driver ? 1 : 0;
  if (known == 0) {
    known = 1;
    const char* name = call_name_(driver, call.cbid);
    const std::uint32_t text = name != nullptr ? sink_.intern(name, plain_length(name)) : 0;
    define_in(sink_, events::CudaFunction{.function = function, .api = api, .name = text});
  }
  emit_to(sink_, at,
          events::CudaCall{.function = function,
                           .api = api,
                           .thread = call.threadId,
                           .duration = duration,
                           .correlation = call.correlationId,
                           .result = call.returnValue});
}

template <class Kernel>
void Transcoder::take_kernel(const Kernel& kernel) {
  std::uint64_t at, duration;
  if (!span(kernel.start, kernel.end, at, duration)) return;
  const KernelKey key{kernel.name != nullptr ? sink_.intern(kernel.name, strlen(kernel.name)) : 0,
                      {kernel.gridX, kernel.gridY, kernel.gridZ},
                      {kernel.blockX, kernel.blockY, kernel.blockZ},
                      kernel.staticSharedMemory,
                      kernel.dynamicSharedMemory,
                      kernel.localMemoryPerThread,
                      kernel.registersPerThread};
  const std::uint32_t number = kernel_number(key);
  const std::uint32_t stream = stream_number(kernel.deviceId, kernel.contextId, kernel.streamId);
  emit_to(sink_, at,
          events::CudaKernelRun{.kernel = number,
                                .stream = stream,
                                .duration = duration,
                                .correlation = kernel.correlationId,
                                .graph = kernel.graphId});
}

template <class Copy>
void Transcoder::take_copy(const Copy& copy, std::uint32_t from_device, std::uint32_t to_device) {
  std::uint64_t at, duration;
  if (!span(copy.start, copy.end, at, duration)) return;
  const std::uint32_t stream = stream_number(copy.deviceId, copy.contextId, copy.streamId);
  emit_to(sink_, at,
          events::CudaCopy{.stream = stream,
                           .kind = copy.copyKind,
                           .from = copy.srcKind,
                           .to = copy.dstKind,
                           .duration = duration,
                           .correlation = copy.correlationId,
                           .graph = copy.graphId,
                           .bytes = copy.bytes,
                           .from_device = from_device,
                           .to_device = to_device});
}

void Transcoder::take(const CUpti_Activity& record) {
  std::uint64_t at, duration;
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      take_call(reinterpret_cast<const ApiCall&>(record));
      break;
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      take_kernel(reinterpret_cast<const Kernel&>(record));
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      take_copy(reinterpret_cast<const Memcpy&>(record), 0, 0);
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto& copy = reinterpret_cast<const MemcpyPeer&>(record);
      take_copy(copy, copy.srcDeviceId, copy.dstDeviceId);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& set = reinterpret_cast<const Memset&>(record);
      if (!span(set.start, set.end, at, duration)) break;
      emit_to(sink_, at,
              events::CudaSet{.stream = stream_number(set.deviceId, set.contextId, set.streamId),
                              .value = set.value,
                              .duration = duration,
                              .correlation = set.correlationId,
                              .graph = set.graphId,
                              .bytes = set.bytes,
                              .memory_kind = set.memoryKind});
      break;
    }
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
      const auto& wait = reinterpret_cast<const Synchronization&>(record);
      if (!span(wait.start, wait.end, at, duration)) break;
      const std::uint32_t event = wait.cudaEventId == CUPTI_SYNCHRONIZATION_INVALID_VALUE ? 0 : wait.cudaEventId;
      // The record has no device. A stream without earlier work is unknown.
      std::uint32_t stream = 0;
      for (std::uint32_t i = 0; i < stream_count_; ++i) {
        if (streams_[i].context == wait.contextId && streams_[i].stream == wait.streamId) stream = streams_[i].number;
      }
      emit_to(sink_, at,
              events::CudaWait{.stream = stream,
                               .kind = static_cast<std::uint32_t>(wait.type),
                               .duration = duration,
                               .correlation = wait.correlationId,
                               .event = event});
      break;
    }
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: {
      const auto& graph = reinterpret_cast<const GraphTrace&>(record);
      if (!span(graph.start, graph.end, at, duration)) break;
      emit_to(sink_, at,
              events::CudaGraph{.stream = stream_number(graph.deviceId, graph.contextId, graph.streamId),
                                .graph = graph.graphId,
                                .duration = duration,
                                .correlation = graph.correlationId});
      break;
    }
    case CUPTI_ACTIVITY_KIND_OVERHEAD: {
      const auto& overhead = reinterpret_cast<const Overhead&>(record);
      if (!span(overhead.start, overhead.end, at, duration)) break;
      const std::uint32_t thread =
          overhead.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD ? overhead.objectId.pt.threadId : 0;
      emit_to(sink_, at,
              events::CudaOverhead{
                  .kind = static_cast<std::uint32_t>(overhead.overheadKind), .thread = thread, .duration = duration});
      break;
    }
    case CUPTI_ACTIVITY_KIND_CONTEXT: {
      const auto& context = reinterpret_cast<const Context&>(record);
      static constexpr char name[] = "default";
      define_stream(stream_number(context.deviceId, context.contextId, context.nullStreamId), context.deviceId,
                    context.contextId, context.nullStreamId, sink_.intern(name, sizeof name - 1));
      break;
    }
    default:
      break;
  }
}

}  // namespace paceline::inject::cupti
