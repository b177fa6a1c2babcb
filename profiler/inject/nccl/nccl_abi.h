// SPDX-License-Identifier: Apache-2.0
// The binary interface between NCCL and its profiler plugins, versions 4 to 6 (NCCL 2.27, 2.28, 2.29). The declarations
// are repeated here, because toolkits do not contain the profiler headers.
//
// Source of the facts: NVIDIA/nccl, src/include/plugin/profiler/profiler_v4.h to v6.h and plugin/nccl_profiler.h. The
// assertions below check the layout that those headers have on 64-bit Linux. The structures have grown at their ends
// only, so a descriptor of version 6 begins like one of version 5.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::inject::nccl {

using Result = int;  // ncclResult_t
inline constexpr Result success = 0, system_error = 2;

// ncclDebugLogger_t: level, subsystems, file, line, format. Not used here.
using Logger = void (*)(int, unsigned long, const char*, int, const char*, ...);

// Kinds of events: bits of the mask that init() returns.
enum EventKind : std::uint64_t {
  group = 1 << 0,
  collective = 1 << 1,
  peer = 1 << 2,
  proxy_op = 1 << 3,
  proxy_step = 1 << 4,
  proxy_control = 1 << 5,
  kernel_channel = 1 << 6,
  net_plugin = 1 << 7,
  // from version 5 on
  group_api = 1 << 8,
  collective_api = 1 << 9,
  peer_api = 1 << 10,
  kernel_launch = 1 << 11,
  // from version 6 on: collectives by copy engines
  copy_engine_collective = 1 << 12,
  copy_engine_sync = 1 << 13,
  copy_engine_batch = 1 << 14,
};

// The only state transition that is used here: a channel of a kernel has stopped.
inline constexpr int kernel_channel_stop = 22;

struct Collective4 {
  std::uint64_t sequence;
  const char* function;
  const void* send;
  void* receive;
  std::size_t count;
  int root;
  const char* datatype;
  std::uint8_t channels;
  std::uint8_t warps;
  const char* algorithm;
  const char* protocol;
};
struct Peer4 {
  const char* function;
  void* buffer;
  const char* datatype;
  std::size_t count;
  int peer;
  std::uint8_t channels;
};
struct Collective5 {
  Collective4 same;
  void* group;
};
struct Peer5 {
  const char* function;
  void* buffer;
  const char* datatype;
  std::size_t count;
  int peer;
  std::uint8_t channels;
  void* group;
};
struct ProxyOp {
  int pid;
  std::uint8_t channel;
  int peer;
  int steps;
  int chunk_bytes;
  int is_send;
};
struct KernelChannel {
  std::uint8_t channel;
  std::uint64_t device_ns;
};
struct GroupApi {
  bool captured;
  int depth;
};
struct CollectiveApi {
  const char* function;
  std::size_t count;
  const char* datatype;
  int root;
  void* stream;
  bool captured;
};
struct PeerApi {
  const char* function;
  std::size_t count;
  const char* datatype;
  void* stream;
  bool captured;
};
struct KernelLaunch {
  void* stream;
};

struct Descriptor4 {
  std::uint8_t kind;
  void* parent;
  int rank;
  union {
    Collective4 collective;
    Peer4 peer;
    ProxyOp proxy_op;
    KernelChannel kernel_channel;
  };
};
// For versions 5 and 6.
struct Descriptor5 {
  std::uint64_t kind;
  void* parent;
  int rank;
  union {
    GroupApi group_api;
    CollectiveApi collective_api;
    PeerApi peer_api;
    KernelLaunch kernel_launch;
    Collective5 collective;
    Peer5 peer;
    ProxyOp proxy_op;
    KernelChannel kernel_channel;
  };
};

// The arguments of a state transition; for kernel_channel_stop the device's clock.
union StateArguments {
  std::uint64_t device_ns;
  std::size_t bytes;
  void* data;
};

static_assert(sizeof(void*) == 8);
static_assert(offsetof(Descriptor4, parent) == 8 && offsetof(Descriptor4, rank) == 16);
static_assert(offsetof(Descriptor4, collective) == 24 && sizeof(Descriptor4) == 24 + 80);
static_assert(offsetof(Descriptor5, parent) == 8 && offsetof(Descriptor5, rank) == 16);
static_assert(offsetof(Descriptor5, collective) == 24 && sizeof(Descriptor5) == 24 + 88);
static_assert(offsetof(Collective4, function) == 8 && offsetof(Collective4, count) == 32);
static_assert(offsetof(Collective4, root) == 40 && offsetof(Collective4, datatype) == 48);
static_assert(offsetof(Collective4, channels) == 56 && offsetof(Collective4, warps) == 57);
static_assert(offsetof(Collective4, algorithm) == 64 && offsetof(Collective4, protocol) == 72);
static_assert(offsetof(Collective5, group) == 80);
static_assert(offsetof(Peer4, datatype) == 16 && offsetof(Peer4, count) == 24 && offsetof(Peer4, peer) == 32);
static_assert(offsetof(Peer4, channels) == 36 && offsetof(Peer5, channels) == 36 && offsetof(Peer5, group) == 40);
static_assert(offsetof(ProxyOp, channel) == 4 && offsetof(ProxyOp, peer) == 8 && offsetof(ProxyOp, is_send) == 20);
static_assert(offsetof(KernelChannel, device_ns) == 8);
static_assert(offsetof(CollectiveApi, datatype) == 16 && offsetof(CollectiveApi, root) == 24);
static_assert(offsetof(CollectiveApi, stream) == 32 && offsetof(CollectiveApi, captured) == 40);
static_assert(offsetof(PeerApi, datatype) == 16 && offsetof(PeerApi, stream) == 24 &&
              offsetof(PeerApi, captured) == 32);
static_assert(offsetof(GroupApi, depth) == 4);
static_assert(sizeof(StateArguments) == 8);

// The tables that a plugin exports: ncclProfiler_v4, ncclProfiler_v5, ncclProfiler_v6.
struct Profiler4 {
  const char* name;
  Result (*init)(void** context, int* mask, const char* communicator, std::uint64_t hash, int nodes, int ranks,
                 int rank, Logger log);
  Result (*start_event)(void* context, void** handle, Descriptor4* descriptor);
  Result (*stop_event)(void* handle);
  Result (*record_event_state)(void* handle, int state, StateArguments* arguments);
  Result (*finalize)(void* context);
};
struct Profiler5 {
  const char* name;
  Result (*init)(void** context, std::uint64_t hash, int* mask, const char* communicator, int nodes, int ranks,
                 int rank, Logger log);
  Result (*start_event)(void* context, void** handle, Descriptor5* descriptor);
  Result (*stop_event)(void* handle);
  Result (*record_event_state)(void* handle, int state, StateArguments* arguments);
  Result (*finalize)(void* context);
};
using Profiler6 = Profiler5;
static_assert(sizeof(Profiler4) == 48 && sizeof(Profiler5) == 48);

}  // namespace paceline::inject::nccl
