// SPDX-License-Identifier: Apache-2.0
// NCCL as an event source: a profiler plugin for versions 1 to 6 of the interface.
//
// NCCL loads this library from NCCL_PROFILER_PLUGIN with its first communicator and unloads it with its last, so
// nothing here may outlive that: no thread, no memory, no lock. NCCL returns the handle of an event and never looks
// into it. So the handle is not a pointer but the event's number (see Handle), and the same holds for the context of a
// communicator. A handle from another process (PXN: a proxy that works for its neighbour) does no harm. The reader
// connects related events.
//
// Only init() may fail; NCCL then goes on without a profiler. The mask requests the events that cost one call on the
// host each. Channels of kernels and proxies cause more work in NCCL itself, so they are requested only if the user
// wants them (environment.h).
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include "profiler/format/event.h"
#include "profiler/inject/find_event_sink.h"
#include "profiler/inject/nccl/nccl_abi.h"
#include "profiler/inject/nccl/nccl_abi_old.h"
#include "profiler/inject/sink_events.h"
#include "profiler/launch/environment.h"

namespace paceline::inject::nccl {
namespace {

using format::NcclCall;

const paceline_event_sink_v1* sink = nullptr;  // set by the first init(), and constant afterwards

// Kind, channel and number of an event instead of a pointer. Never null.
struct Handle {
  static constexpr unsigned channel_shift = 4, id_shift = 12;
  enum Tag : std::uint64_t { plain = 1, channel = 2 };

  static void* make(Tag tag, std::uint64_t id, std::uint64_t channel_number = 0) {
    return reinterpret_cast<void*>(id << id_shift | channel_number << channel_shift | tag);
  }
  explicit Handle(const void* handle) : bits(reinterpret_cast<std::uintptr_t>(handle)) {}
  Tag tag() const { return static_cast<Tag>(bits & 0xf); }
  std::uint64_t channel_number() const { return bits >> channel_shift & 0xff; }
  std::uint64_t id() const { return bits >> id_shift; }  // 0 for a null handle

  std::uint64_t bits;
};

// Numbers of events. They must not repeat when the library is loaded again. So they start from the clock, which
// advances by 16 to 60 million per second, faster than events occur.
std::atomic<std::uint64_t> next_id{0};
constexpr std::uint32_t first_communicator = 0x8000'0000;  // in the same file MPI's communicators count from 1

std::uint64_t new_id() { return next_id.fetch_add(1, std::memory_order_relaxed); }

bool asked_for(const char* word) {
  const char* wanted = getenv(record::env_nccl);
  return wanted != nullptr && strstr(wanted, word) != nullptr;
}

template <class Event>
void emit(const Event& event) {
  emit_to(*sink, sink->ticks(), event);
}

// --- names

class Text {
 public:
  void word(const char* text) {
    if (size_ > 0) put(' ');
    if (text == nullptr || *text == '\0') text = "-";
    for (; *text != '\0'; ++text) put(*text == ' ' ? '_' : *text);
  }
  void word(unsigned number) {
    char digits[16];
    unsigned at = sizeof digits - 1;
    digits[at] = '\0';
    do digits[--at] = static_cast<char>('0' + number % 10);
    while ((number /= 10) > 0);
    word(digits + at);
  }
  std::uint32_t number() const { return sink->intern(text_, size_); }

 private:
  void put(char c) {
    if (size_ < sizeof text_) text_[size_++] = c;
  }
  char text_[256];
  std::size_t size_ = 0;
};

std::uint32_t operation(const char* function, const char* datatype = nullptr, const char* algorithm = nullptr,
                        const char* protocol = nullptr, unsigned channels = 0, unsigned warps = 0) {
  Text text;
  text.word(function);
  text.word(datatype);
  text.word(algorithm);
  text.word(protocol);
  text.word(channels);
  text.word(warps);
  return text.number();
}

std::uint64_t bytes_of(std::size_t count, const char* datatype) {
  struct Size {
    const char* name;
    std::uint64_t bytes;
  };
  static constexpr Size sizes[] = {
      {"ncclInt8", 1},    {"ncclUint8", 1},    {"ncclFloat8e4m3", 1}, {"ncclFloat8e5m2", 1},
      {"ncclFloat16", 2}, {"ncclBfloat16", 2}, {"ncclInt32", 4},      {"ncclUint32", 4},
      {"ncclFloat32", 4}, {"ncclInt64", 8},    {"ncclUint64", 8},     {"ncclFloat64", 8},
  };
  if (datatype == nullptr) return 0;
  for (const Size& size : sizes) {
    if (strcmp(size.name, datatype) == 0) return size.bytes * count;
  }
  return 0;  // a type that is newer than this code
}

// --- events

std::uint32_t communicator_of(void* context) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(context));
}

// Gives the event an id and writes it.
template <class Event>
void* begin(Event event) {
  event.id = new_id();
  emit(event);
  return Handle::make(Handle::plain, event.id);
}

void* begin_call(void* context, NcclCall kind, std::uint32_t name, std::uint64_t bytes = 0, int root = -1,
                 bool captured = false) {
  return begin(events::NcclApiCall{.operation = name,
                                   .communicator = communicator_of(context),
                                   .bytes = bytes,
                                   .kind = kind,
                                   .root = root,
                                   .captured = captured ? 1U : 0U});
}

void* begin_collective(void* context, const Collective4& of, const void* group) {
  const std::uint32_t name = operation(of.function, of.datatype, of.algorithm, of.protocol, of.channels, of.warps);
  return begin(events::NcclCollective{.operation = name,
                                      .communicator = communicator_of(context),
                                      .bytes = bytes_of(of.count, of.datatype),
                                      .sequence = static_cast<std::uint32_t>(of.sequence),
                                      .root = of.root,
                                      .group = Handle(group).id()});
}

template <class Peer>
void* begin_peer(void* context, const Peer& of, const void* group) {
  const std::uint32_t name = operation(of.function, of.datatype, nullptr, nullptr, of.channels);
  return begin(events::NcclPeer{.operation = name,
                                .communicator = communicator_of(context),
                                .bytes = bytes_of(of.count, of.datatype),
                                .peer = of.peer,
                                .channels = of.channels,
                                .group = Handle(group).id()});
}

void* begin_proxy(const ProxyOp& of, const void* parent) {
  const std::uint64_t work = of.pid == getpid() ? Handle(parent).id() : 0;  // otherwise the id of another process
  return begin(events::NcclProxy{.channel = of.channel,
                                 .sends = static_cast<std::uint16_t>(of.is_send != 0 ? 1 : 0),
                                 .peer = of.peer,
                                 .work = work,
                                 .steps = static_cast<std::uint32_t>(of.steps),
                                 .chunk_bytes = static_cast<std::uint32_t>(of.chunk_bytes)});
}

void channel_edge(std::uint64_t id, std::uint32_t channel, std::uint64_t device_ns, std::uint32_t edge) {
  emit(events::NcclChannel{.work = id, .device_ns = device_ns, .channel = channel, .edge = edge});
}

void* begin_channel(const KernelChannel& of, const void* parent) {
  const std::uint64_t id = Handle(parent).id();
  channel_edge(id, of.channel, of.device_ns, 0);
  return Handle::make(Handle::channel, id, of.channel);
}

// --- the interface

void seek_sink() {
  const paceline_event_sink_v1* found = find_event_sink("NCCL");
  if (found == nullptr || found->open() == 0) return;
  next_id.store(found->ticks() >> 6 | 1, std::memory_order_relaxed);
  sink = found;
}
pthread_once_t sink_sought = PTHREAD_ONCE_INIT;

// The number of a text that only this rank of this communicator has. It stays the same when the library is loaded
// again.
std::uint32_t communicator_text(std::uint64_t hash, int rank) {
  char text[48] = "NCCL ";
  unsigned at = 5;
  for (int shift = 60; shift >= 0; shift -= 4) text[at++] = "0123456789abcdef"[hash >> shift & 0xf];
  text[at++] = ' ';
  for (int shift = 28; shift >= 0; shift -= 4)
    text[at++] = "0123456789abcdef"[static_cast<unsigned>(rank) >> shift & 0xf];
  return sink->intern(text, at);
}

// Writes what is known of a communicator; ranks: 0 if unknown. Returns its number, which stands for it as a context.
std::uint32_t define_communicator(std::uint64_t hash, const char* name, int ranks, int rank) {
  const std::uint32_t number = first_communicator | communicator_text(hash, rank);
  const std::uint32_t name_id = name != nullptr ? sink->intern(name, strlen(name)) : 0;
  define_in(*sink, events::Communicator{.communicator = number,
                                        .size = static_cast<std::uint32_t>(ranks),
                                        .identity = hash,
                                        .rank = static_cast<std::uint32_t>(rank),
                                        .name = name_id});
  return number;
}

void* context_of(std::uint32_t communicator) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(communicator));
}

Result begin_plugin(void** context, int* mask, int wanted) {
  *context = nullptr;
  *mask = 0;
  pthread_once(&sink_sought, seek_sink);
  if (sink == nullptr) return system_error;
  if (asked_for("proxy")) wanted |= proxy_op;
  if (asked_for("channels")) wanted |= kernel_channel;
  *mask = wanted;
  return success;
}

Result init(void** context, std::uint64_t hash, int* mask, int wanted, const char* name, int ranks, int rank) {
  const Result began = begin_plugin(context, mask, wanted);
  if (began == success) *context = context_of(define_communicator(hash, name, ranks, rank));
  return began;
}

constexpr int wanted4 = group | collective | peer;
constexpr int wanted5 = wanted4 | group_api | collective_api | peer_api | kernel_launch;

Result init4(void** context, int* mask, const char* name, std::uint64_t hash, int, int ranks, int rank, Logger) {
  return init(context, hash, mask, wanted4, name, ranks, rank);
}
Result init5(void** context, std::uint64_t hash, int* mask, const char* name, int, int ranks, int rank, Logger) {
  return init(context, hash, mask, wanted5, name, ranks, rank);
}

// The events that versions 5 and 6 have and version 4 lacks.
void* begin_newer(void*, const Descriptor4&) { return nullptr; }
void* begin_newer(void* context, const Descriptor5& of) {
  switch (of.kind) {
    case group_api:
      return begin_call(context, NcclCall::group_api, operation("Group"), 0, -1, of.group_api.captured);
    case collective_api: {
      const CollectiveApi& api = of.collective_api;
      return begin_call(context, NcclCall::collective_api, operation(api.function, api.datatype),
                        bytes_of(api.count, api.datatype), api.root, api.captured);
    }
    case peer_api: {
      const PeerApi& api = of.peer_api;
      return begin_call(context, NcclCall::peer_api, operation(api.function, api.datatype),
                        bytes_of(api.count, api.datatype), -1, api.captured);
    }
    case kernel_launch:
      return begin_call(context, NcclCall::kernel_launch, operation("KernelLaunch"));
    default:
      return nullptr;
  }
}

// The plan that a collective was enqueued with. Version 4 calls it the parent.
const void* group_of(const Descriptor4& of, const Collective4&) { return of.parent; }
const void* group_of(const Descriptor4& of, const Peer4&) { return of.parent; }
const void* group_of(const Descriptor5&, const Collective5& work) { return work.group; }
const void* group_of(const Descriptor5&, const Peer5& work) { return work.group; }

const Collective4& common(const Collective4& work) { return work; }
const Collective4& common(const Collective5& work) { return work.same; }

template <class Descriptor>
Result start_event(void* context, void** handle, Descriptor* of) {
  if (handle == nullptr) return success;
  *handle = nullptr;
  if (of == nullptr || sink == nullptr || sink->recording() == 0) return success;
  switch (of->kind) {
    case group:
      *handle = begin_call(context, NcclCall::group, operation("Enqueue"));
      break;
    case collective:
      *handle = begin_collective(context, common(of->collective), group_of(*of, of->collective));
      break;
    case peer:
      *handle = begin_peer(context, of->peer, group_of(*of, of->peer));
      break;
    case proxy_op:
      *handle = begin_proxy(of->proxy_op, of->parent);
      break;
    case kernel_channel:
      *handle = begin_channel(of->kernel_channel, of->parent);
      break;
    default:
      *handle = begin_newer(context, *of);
      break;
  }
  return success;
}

Result stop_event(void* handle) {
  const Handle of(handle);
  if (sink != nullptr && of.tag() == Handle::plain) emit(events::NcclEnd{.id = of.id()});
  return success;
}

Result record_event_state(void* handle, int state, StateArguments* arguments) {
  const Handle of(handle);
  if (sink != nullptr && of.tag() == Handle::channel && state == kernel_channel_stop && arguments != nullptr) {
    channel_edge(of.id(), of.channel_number(), arguments->device_ns, 1);
  }
  return success;
}

Result finalize(void*) { return success; }

// --- versions 1 to 3

// The communicators that events have named, so that each is defined once: a table without a lock. Two threads that meet
// a communicator at the same time both define it, equally.
class Known {
 public:
  std::uint32_t number(std::uint64_t hash, const char* name, int rank) {
    const std::uint64_t key = (hash ^ static_cast<std::uint64_t>(rank) << 48) | 1;
    for (std::size_t i = 0; i < size; ++i) {
      Entry& entry = entries_[(key / 2 + i) % size];
      std::uint64_t found = entry.key.load(std::memory_order_acquire);
      if (found == 0 && entry.key.compare_exchange_strong(found, key)) found = key;
      if (found != key) continue;
      std::uint32_t number = entry.number.load(std::memory_order_relaxed);
      if (number == 0) {
        number = define_communicator(hash, name, 0, rank);
        entry.number.store(number, std::memory_order_relaxed);
      }
      return number;
    }
    return define_communicator(hash, name, 0, rank);  // the table is full
  }

 private:
  static constexpr std::size_t size = 256;
  struct Entry {
    std::atomic<std::uint64_t> key{0};
    std::atomic<std::uint32_t> number{0};
  };
  Entry entries_[size];
};
Known known;

// No kernel channels: these versions do not give the device's clock.
Result init_old(void** context, int* mask) {
  const Result began = begin_plugin(context, mask, wanted4);
  *mask &= ~kernel_channel;
  return began;
}

template <class Descriptor>
Result start_event_old(void*, void** handle, Descriptor* of) {
  if (handle == nullptr) return success;
  *handle = nullptr;
  if (of == nullptr || sink == nullptr || sink->recording() == 0) return success;
  switch (of->kind) {
    case group:
      *handle = begin_call(nullptr, NcclCall::group, operation("Enqueue"));
      break;
    case collective:
      *handle = begin_collective(context_of(known.number(of->collective.hash, of->collective.name, of->rank)),
                                 newer(of->collective), of->parent);
      break;
    case peer:
      *handle =
          begin_peer(context_of(known.number(of->peer.hash, of->peer.name, of->rank)), newer(of->peer), of->parent);
      break;
    case proxy_op:
      *handle = begin_proxy(of->proxy_op, of->parent);
      break;
  }
  return success;
}

Result ignore_state(void*, int, StateArguments*) { return success; }

constexpr char plugin_name[] = "Paceline";

template <class Descriptor>
constexpr OldProfiler<Descriptor> old_profiler{plugin_name, init_old,     start_event_old<Descriptor>,
                                               stop_event,  ignore_state, finalize};

}  // namespace
}  // namespace paceline::inject::nccl

namespace nccl = paceline::inject::nccl;
extern "C" {
#define PACELINE_EXPORT extern __attribute__((visibility("default")))
PACELINE_EXPORT const nccl::Profiler1 ncclProfiler_v1;
PACELINE_EXPORT const nccl::Profiler2 ncclProfiler_v2;
PACELINE_EXPORT const nccl::Profiler3 ncclProfiler_v3;
PACELINE_EXPORT const nccl::Profiler4 ncclProfiler_v4;
PACELINE_EXPORT const nccl::Profiler5 ncclProfiler_v5;
PACELINE_EXPORT const nccl::Profiler6 ncclProfiler_v6;
const nccl::Profiler1 ncclProfiler_v1 = nccl::old_profiler<nccl::Descriptor1>;
const nccl::Profiler2 ncclProfiler_v2 = nccl::old_profiler<nccl::Descriptor2>;
const nccl::Profiler3 ncclProfiler_v3 = nccl::old_profiler<nccl::Descriptor3>;
const nccl::Profiler4 ncclProfiler_v4 = {nccl::plugin_name,        nccl::init4,   nccl::start_event, nccl::stop_event,
                                         nccl::record_event_state, nccl::finalize};
const nccl::Profiler5 ncclProfiler_v5 = {nccl::plugin_name,        nccl::init5,   nccl::start_event, nccl::stop_event,
                                         nccl::record_event_state, nccl::finalize};
const nccl::Profiler6 ncclProfiler_v6 = {nccl::plugin_name,        nccl::init5,   nccl::start_event, nccl::stop_event,
                                         nccl::record_event_state, nccl::finalize};
}
