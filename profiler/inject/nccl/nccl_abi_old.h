// SPDX-License-Identifier: Apache-2.0
// The binary interface of NCCL's profiler plugins before version 4: version 1 (NCCL 2.23), 2 (2.24, 2.25) and 3 (2.26).
//
// Its init() names no communicator. Instead each collective, send and receive has the communicator's hash, its name and
// the rank in it. Version 1 has numbers where later versions have names. Of the state transitions none is used here.
//
// Source of the facts: NVIDIA/nccl, ext-profiler/example/nccl/profiler_v1.h to v3.h, and src/include/nccl_common.h
// of 2.23 for the numbers.
#pragma once

#include "profiler/inject/nccl/nccl_abi.h"

namespace paceline::inject::nccl {

// The named numbers of version 1, as later versions name them.
inline constexpr const char* functions1[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                             "AllReduce", "SendRecv", "Send",      "Recv"};
inline constexpr const char* datatypes1[] = {"ncclInt8",   "ncclUint8",   "ncclInt32",   "ncclUint32",  "ncclInt64",
                                             "ncclUint64", "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16"};
inline constexpr const char* algorithms1[] = {"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                                              "NVLS_TREE", "PAT"};
inline constexpr const char* protocols1[] = {"LL", "LL128", "SIMPLE"};

// nullptr for a number that has no name here.
template <std::size_t N>
const char* named(const char* const (&names)[N], std::uint8_t number) {
  return number < N ? names[number] : nullptr;
}

struct Collective1 {
  const char* name;  // the communicator's
  std::uint64_t hash;
  std::uint64_t sequence;
  std::uint8_t function;
  const void* send;
  void* receive;
  std::size_t count;
  int root;
  std::uint8_t datatype;
  std::uint32_t operation;
  std::size_t traffic_bytes;
  std::uint8_t channels;
  std::uint8_t warps;
  std::uint8_t algorithm;
  std::uint8_t protocol;
  int is_collnet;
  int is_nvls;
};
struct Peer1 {
  const char* name;
  std::uint64_t hash;
  std::uint8_t function;
  void* buffer;
  std::uint8_t datatype;
  std::size_t count;
  int peer;
};
struct Collective2 {
  const char* name;
  std::uint64_t hash;
  std::uint64_t sequence;
  const char* function;
  const void* send;
  void* receive;
  std::size_t count;
  int root;
  const char* datatype;
  std::size_t traffic_bytes;
  std::uint8_t channels;
  std::uint8_t warps;
  const char* algorithm;
  const char* protocol;
};
struct Collective3 {
  const char* name;
  std::uint64_t hash;
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
struct Peer2 {
  const char* name;
  std::uint64_t hash;
  const char* function;
  void* buffer;
  const char* datatype;
  std::size_t count;
  int peer;
};

template <class CollectiveType, class PeerType>
struct OldDescriptor {
  using Collective = CollectiveType;
  using Peer = PeerType;
  std::uint8_t kind;
  void* parent;
  int rank;
  union {
    Collective collective;
    Peer peer;
    ProxyOp proxy_op;
  };
};
using Descriptor1 = OldDescriptor<Collective1, Peer1>;
using Descriptor2 = OldDescriptor<Collective2, Peer2>;
using Descriptor3 = OldDescriptor<Collective3, Peer2>;

static_assert(sizeof(Descriptor1) == 24 + 96 && offsetof(Descriptor1, collective) == 24);
static_assert(sizeof(Descriptor2) == 24 + 104 && sizeof(Descriptor3) == 24 + 96);
static_assert(offsetof(Collective1, function) == 24 && offsetof(Collective1, count) == 48);
static_assert(offsetof(Collective1, root) == 56 && offsetof(Collective1, datatype) == 60);
static_assert(offsetof(Collective1, operation) == 64 && offsetof(Collective1, traffic_bytes) == 72);
static_assert(offsetof(Collective1, channels) == 80 && offsetof(Collective1, protocol) == 83);
static_assert(offsetof(Collective1, is_collnet) == 84 && offsetof(Collective1, is_nvls) == 88);
static_assert(offsetof(Collective2, datatype) == 64 && offsetof(Collective2, channels) == 80);
static_assert(offsetof(Collective2, algorithm) == 88 && offsetof(Collective3, algorithm) == 80);
static_assert(offsetof(Peer1, buffer) == 24 && offsetof(Peer1, datatype) == 32 && offsetof(Peer1, peer) == 48);
static_assert(offsetof(Peer2, datatype) == 32 && offsetof(Peer2, count) == 40 && offsetof(Peer2, peer) == 48);

// The same as version 4 has it.
inline Collective4 newer(const Collective1& of) {
  return {of.sequence,
          named(functions1, of.function),
          of.send,
          of.receive,
          of.count,
          of.root,
          named(datatypes1, of.datatype),
          of.channels,
          of.warps,
          named(algorithms1, of.algorithm),
          named(protocols1, of.protocol)};
}
template <class Collective>
Collective4 newer(const Collective& of) {
  return {of.sequence, of.function, of.send,  of.receive,   of.count,   of.root,
          of.datatype, of.channels, of.warps, of.algorithm, of.protocol};
}
inline Peer4 newer(const Peer1& of) {
  return {named(functions1, of.function), of.buffer, named(datatypes1, of.datatype), of.count, of.peer, 0};
}
inline Peer4 newer(const Peer2& of) { return {of.function, of.buffer, of.datatype, of.count, of.peer, 0}; }

// The tables ncclProfiler_v1 to v3.
template <class Descriptor>
struct OldProfiler {
  const char* name;
  Result (*init)(void** context, int* mask);
  Result (*start_event)(void* context, void** handle, Descriptor* descriptor);
  Result (*stop_event)(void* handle);
  Result (*record_event_state)(void* handle, int state, StateArguments* arguments);
  Result (*finalize)(void* context);
};
using Profiler1 = OldProfiler<Descriptor1>;
using Profiler2 = OldProfiler<Descriptor2>;
using Profiler3 = OldProfiler<Descriptor3>;

}  // namespace paceline::inject::nccl
