// SPDX-License-Identifier: Apache-2.0
// The parts of CUPTI's activity records that the recorder reads.
//
// CUPTI writes the records of its own version, which may be older or newer than the headers of this build. NVIDIA only
// appends fields. So each record is read with the oldest declaration that has the needed fields, and the assertions
// below check that these fields have the offsets of the CUDA 13.0 headers. Headers of CUDA 12 declare the same old
// structs; a build with them has not been tested.
#pragma once

#include <cupti.h>

#include <cstddef>

namespace paceline::inject::cupti {

using Kernel = CUpti_ActivityKernel9;
using Memcpy = CUpti_ActivityMemcpy5;
using MemcpyPeer = CUpti_ActivityMemcpyPtoP4;
using Memset = CUpti_ActivityMemset4;
using ApiCall = CUpti_ActivityAPI;
using Synchronization = CUpti_ActivitySynchronization;
using Overhead = CUpti_ActivityOverhead;
using GraphTrace = CUpti_ActivityGraphTrace;
using Context = CUpti_ActivityContext;

#if CUPTI_API_VERSION >= 130000
#define PACELINE_SAME(Old, New, field) static_assert(offsetof(Old, field) == offsetof(New, field))
PACELINE_SAME(Kernel, CUpti_ActivityKernel10, registersPerThread);
PACELINE_SAME(Kernel, CUpti_ActivityKernel10, start);
PACELINE_SAME(Kernel, CUpti_ActivityKernel10, end);
PACELINE_SAME(Kernel, CUpti_ActivityKernel10, deviceId);
PACELINE_SAME(Kernel, CUpti_ActivityKernel10, contextId);
PACELINE_SAME(Kernel, CUpti_ActivityKernel10, streamId);
PACELINE_SAME(Kernel, CUpti_ActivityKernel10, gridX);
PACELINE_SAME(Kernel, CUpti_ActivityKernel10, gridZ);
PACELINE_SAME(Kernel, CUpti_ActivityKernel10, blockX);
PACELINE_SAME(Kernel, CUpti_ActivityKernel10, blockZ);
PACELINE_SAME(Kernel, CUpti_ActivityKernel10, staticSharedMemory);
PACELINE_SAME(Kernel, CUpti_ActivityKernel10, dynamicSharedMemory);
PACELINE_SAME(Kernel, CUpti_ActivityKernel10, localMemoryPerThread);
PACELINE_SAME(Kernel, CUpti_ActivityKernel10, correlationId);
PACELINE_SAME(Kernel, CUpti_ActivityKernel10, name);
PACELINE_SAME(Kernel, CUpti_ActivityKernel10, graphId);
PACELINE_SAME(Memcpy, CUpti_ActivityMemcpy6, copyKind);
PACELINE_SAME(Memcpy, CUpti_ActivityMemcpy6, dstKind);
PACELINE_SAME(Memcpy, CUpti_ActivityMemcpy6, bytes);
PACELINE_SAME(Memcpy, CUpti_ActivityMemcpy6, start);
PACELINE_SAME(Memcpy, CUpti_ActivityMemcpy6, end);
PACELINE_SAME(Memcpy, CUpti_ActivityMemcpy6, deviceId);
PACELINE_SAME(Memcpy, CUpti_ActivityMemcpy6, contextId);
PACELINE_SAME(Memcpy, CUpti_ActivityMemcpy6, streamId);
PACELINE_SAME(Memcpy, CUpti_ActivityMemcpy6, correlationId);
PACELINE_SAME(Memcpy, CUpti_ActivityMemcpy6, graphId);
PACELINE_SAME(Synchronization, CUpti_ActivitySynchronization2, type);
PACELINE_SAME(Synchronization, CUpti_ActivitySynchronization2, start);
PACELINE_SAME(Synchronization, CUpti_ActivitySynchronization2, end);
PACELINE_SAME(Synchronization, CUpti_ActivitySynchronization2, correlationId);
PACELINE_SAME(Synchronization, CUpti_ActivitySynchronization2, contextId);
PACELINE_SAME(Synchronization, CUpti_ActivitySynchronization2, streamId);
PACELINE_SAME(Synchronization, CUpti_ActivitySynchronization2, cudaEventId);
PACELINE_SAME(Overhead, CUpti_ActivityOverhead3, overheadKind);
PACELINE_SAME(Overhead, CUpti_ActivityOverhead3, objectKind);
PACELINE_SAME(Overhead, CUpti_ActivityOverhead3, objectId);
PACELINE_SAME(Overhead, CUpti_ActivityOverhead3, start);
PACELINE_SAME(Overhead, CUpti_ActivityOverhead3, end);
PACELINE_SAME(GraphTrace, CUpti_ActivityGraphTrace2, correlationId);
PACELINE_SAME(GraphTrace, CUpti_ActivityGraphTrace2, start);
PACELINE_SAME(GraphTrace, CUpti_ActivityGraphTrace2, end);
PACELINE_SAME(GraphTrace, CUpti_ActivityGraphTrace2, deviceId);
PACELINE_SAME(GraphTrace, CUpti_ActivityGraphTrace2, graphId);
PACELINE_SAME(GraphTrace, CUpti_ActivityGraphTrace2, contextId);
PACELINE_SAME(GraphTrace, CUpti_ActivityGraphTrace2, streamId);
PACELINE_SAME(Context, CUpti_ActivityContext3, contextId);
PACELINE_SAME(Context, CUpti_ActivityContext3, deviceId);
PACELINE_SAME(Context, CUpti_ActivityContext3, nullStreamId);
#undef PACELINE_SAME
#endif

// The versions of CUPTI whose records begin like this: from CUDA 12.0 to the headers' own major version.
inline constexpr std::uint32_t oldest_version = 19, newest_old_version = 28;
inline constexpr bool is_known_version(std::uint32_t version) {
  const std::uint32_t newest = CUPTI_API_VERSION >= 130000 ? CUPTI_API_VERSION / 10000 : 0;
  return (version >= oldest_version && version <= newest_old_version) ||
         (version >= 130000 && version / 10000 <= newest);
}

}  // namespace paceline::inject::cupti
