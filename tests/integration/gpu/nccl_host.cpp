// SPDX-License-Identifier: Apache-2.0
// usage: nccl_host VERSION COUNT [ranges]: calls the profiler plugin in $NCCL_PROFILER_PLUGIN as NCCL of that version
// of the interface does: two communicators, each on a thread of its own, COUNT collectives each, and unloads it in
// between. VERSION 0 is an NCCL that has no plugin.
//
// With `ranges` it has NCCL's NVTX ranges, too, and every second collective is called in a group with another one, of
// which the larger, called last, is enqueued first.
//
// Per collective, in NCCL's order (enqueue.cc): group and call of the interface, launch of the kernel, then the plan
// with the collective in it. Where the plugin asks for channels, they are told late, with a device's clock that is an
// hour ahead, and last 50 µs by it.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "profiler/inject/nccl/nccl_abi.h"
#include "profiler/inject/nccl/nccl_abi_old.h"
#include "tests/integration/nccl_ranges.h"

namespace {

using namespace paceline::inject::nccl;

[[noreturn]] void fail(const char* what) {
  fprintf(stderr, "nccl_host: %s\n", what);
  exit(1);
}

std::uint64_t device_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec + 3600) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

struct Names {  // NCCL's, as it passes them
  const char *function, *datatype = "ncclFloat32", *algorithm = "RING", *protocol = "SIMPLE";
};

void fill(Collective4& of, const Names& names, std::uint64_t sequence, std::size_t count) {
  of = {sequence, names.function, nullptr, nullptr, count, 0, names.datatype, 2, 16, names.algorithm, names.protocol};
}
void fill(Collective5& of, const Names& names, std::uint64_t sequence, std::size_t count, void* group_handle) {
  fill(of.same, names, sequence, count);
  of.group = group_handle;
}

template <class Profiler, class Descriptor>
class Communicator {
 public:
  Communicator(const Profiler& plugin, void* context, int mask) : plugin_(plugin), context_(context), mask_(mask) {}

  void channels(void* of) {
    if ((mask_ & kernel_channel) == 0) return;
    const std::uint64_t begin = device_ns();
    usleep(60);
    for (std::uint8_t channel = 0; channel < 2; ++channel) {
      Descriptor descriptor{};
      descriptor.kind = kernel_channel;
      descriptor.parent = of;
      descriptor.kernel_channel = {channel, begin + 1000 * channel};
      void* handle = start(descriptor);
      StateArguments arguments{};
      arguments.device_ns = begin + 49'000 + 1000 * channel;
      if (plugin_.record_event_state(handle, kernel_channel_stop, &arguments) != success) fail("state");
      stop(handle);
    }
  }

  void proxy(void* of) {
    if ((mask_ & proxy_op) == 0) return;
    for (const int pid : {getpid(), 1}) {  // a proxy of ours, and one that works for another process
      Descriptor descriptor{};
      descriptor.kind = proxy_op;
      descriptor.parent = pid == 1 ? reinterpret_cast<void*>(0x7fff'1234'5678) : of;
      descriptor.proxy_op = {pid, 1, 1, 8, 131072, 1};
      void* handle = start(descriptor);
      stop(handle);
    }
  }

  void* start(Descriptor& descriptor) {
    void* handle = reinterpret_cast<void*>(1);
    if (plugin_.start_event(context_, &handle, &descriptor) != success) fail("startEvent");
    return handle;
  }
  void* start(EventKind kind) {
    Descriptor descriptor{};
    descriptor.kind = static_cast<decltype(descriptor.kind)>(kind);
    return start(descriptor);
  }
  void stop(void* handle) {
    if (handle != nullptr && plugin_.stop_event(handle) != success) fail("stopEvent");
  }
  void finalize() {
    if (plugin_.finalize(context_) != success) fail("finalize");
  }

 private:
  const Profiler& plugin_;
  void* context_;
  int mask_;
};

constexpr std::size_t large = 262144, small = 1000;  // counts of floats

void enqueue(Communicator<Profiler4, Descriptor4>& communicator, std::uint64_t sequence, std::size_t count) {
  void* plan = communicator.start(group);
  Descriptor4 of{};
  of.kind = collective;
  of.parent = plan;
  fill(of.collective, {"AllReduce"}, sequence, count);
  void* work = communicator.start(of);
  communicator.stop(work);
  communicator.stop(plan);
  communicator.channels(work);
  communicator.proxy(work);
}

void enqueue(Communicator<Profiler5, Descriptor5>& communicator, std::uint64_t sequence, std::size_t count) {
  Descriptor5 of{};
  of.kind = group_api;
  of.group_api = {false, 1};
  void* api_group = communicator.start(of);
  of = {};
  of.kind = collective_api;
  of.parent = api_group;
  of.collective_api = {"AllReduce", count, "ncclFloat32", 0, nullptr, false};
  void* api = communicator.start(of);
  communicator.stop(api);
  void* launch = communicator.start(kernel_launch);
  communicator.stop(launch);
  void* plan = communicator.start(group);
  of = {};
  of.kind = collective;
  of.parent = api;
  fill(of.collective, {"AllReduce"}, sequence, count, plan);
  void* work = communicator.start(of);
  communicator.stop(work);
  communicator.stop(plan);
  communicator.stop(api_group);
  communicator.channels(work);
  communicator.proxy(work);
}

// Versions 1 to 3: the communicator comes with each event. Version 1 names by numbers.
template <class Descriptor>
struct OldCommunicator : Communicator<OldProfiler<Descriptor>, Descriptor> {
  using Communicator<OldProfiler<Descriptor>, Descriptor>::Communicator;
  const char* name = nullptr;
  std::uint64_t hash = 0;
  int rank = 0;
};

void fill(Collective1& of, std::uint64_t sequence, std::size_t count) {
  of = {nullptr, 0, sequence, 4, nullptr, nullptr, count, 0, 7, 0, 0, 2, 16, 1, 2, 0, 0};
}
void fill(Collective2& of, std::uint64_t sequence, std::size_t count) {
  of = {nullptr, 0, sequence, "AllReduce", nullptr, nullptr, count, 0, "ncclFloat32", 0, 2, 16, "RING", "SIMPLE"};
}
void fill(Collective3& of, std::uint64_t sequence, std::size_t count) {
  of = {nullptr, 0, sequence, "AllReduce", nullptr, nullptr, count, 0, "ncclFloat32", 2, 16, "RING", "SIMPLE"};
}

template <class Descriptor>
void enqueue(OldCommunicator<Descriptor>& communicator, std::uint64_t sequence, std::size_t count) {
  void* plan = communicator.start(group);
  Descriptor of{};
  of.kind = collective;
  of.parent = plan;
  of.rank = communicator.rank;
  fill(of.collective, sequence, count);
  of.collective.name = communicator.name, of.collective.hash = communicator.hash;
  void* work = communicator.start(of);
  communicator.stop(work);
  communicator.stop(plan);
  communicator.proxy(work);
}

void peer5(Communicator<Profiler5, Descriptor5>& communicator) {
  void* plan = communicator.start(group);
  Descriptor5 of{};
  of.kind = peer;
  of.peer = {"Send", nullptr, "ncclBfloat16", 1000, 1, 1, plan};
  void* work = communicator.start(of);
  communicator.stop(work);
  communicator.stop(plan);
}

void empty_range(const char* function) {
  nccl_push(function, 0, nullptr, 0);
  nccl_pop();
}

// One collective after another; `enqueue` takes sequence and count.
template <class Enqueue>
void collectives(std::uint64_t hash, std::uint64_t count, bool ranges, Enqueue&& enqueue) {
  if (ranges) nccl_communicator_made(hash, 2);
  const auto range = [&](std::size_t floats, int operation) {
    const nccl_reduce_payload payload{hash, floats * sizeof(float), operation};
    nccl_push("ncclAllReduce", nccl_all_reduce, &payload, sizeof payload);
  };
  for (std::uint64_t sequence = 0; sequence < count; ++sequence) {
    if (!ranges) {
      enqueue(sequence, large);
    } else if (sequence % 2 == 0 || sequence + 1 == count) {
      range(large, nccl_sum);
      enqueue(sequence, large);
      nccl_pop();
    } else {
      empty_range("ncclGroupStart");
      range(small, nccl_max), nccl_pop();
      range(large, nccl_product), nccl_pop();
      nccl_push("ncclGroupEnd", 0, nullptr, 0);
      enqueue(sequence++, large);
      enqueue(sequence, small);
      nccl_pop();
    }
  }
}

template <class Body>
void both(Body&& body) {
  std::thread first([&] { body(0); }), second([&] { body(1); });
  first.join();
  second.join();
}

constexpr std::uint64_t hashes[] = {0xfeed'0000'0000'0001, 0xfeed'0000'0000'0002};
const char* const names[] = {"data parallel", nullptr};

template <class Descriptor>
void use_old(const void* table, int which, int rank, std::uint64_t count, bool ranges) {
  const auto& plugin = *static_cast<const OldProfiler<Descriptor>*>(table);
  void* context = nullptr;
  int mask = 0;
  if (plugin.init(&context, &mask) != success) fail("init");
  if ((mask & kernel_channel) != 0) fail("channels without the device's clock were asked for");
  OldCommunicator<Descriptor> communicator(plugin, context, mask);
  communicator.name = names[which], communicator.hash = hashes[which], communicator.rank = rank;
  collectives(hashes[which], count, ranges, [&](auto... of) { enqueue(communicator, of...); });
  communicator.finalize();
}

void use(void* library, int version, std::uint64_t count, bool ranges) {
  const char* place = getenv("RANK");
  const int rank = place != nullptr ? atoi(place) : 0;
  const std::string symbol = "ncclProfiler_v" + std::to_string(version);
  void* found = dlsym(library, symbol.c_str());
  if (found == nullptr) fail(dlerror());
  both([&](int which) {
    if (version == 1) return use_old<Descriptor1>(found, which, rank, count, ranges);
    if (version == 2) return use_old<Descriptor2>(found, which, rank, count, ranges);
    if (version == 3) return use_old<Descriptor3>(found, which, rank, count, ranges);
    void* context = nullptr;
    int mask = 0;
    if (version == 4) {
      const auto& plugin = *static_cast<const Profiler4*>(found);
      if (plugin.init(&context, &mask, names[which], hashes[which], 1, 2, rank, nullptr) != success) fail("init");
      Communicator<Profiler4, Descriptor4> communicator(plugin, context, mask);
      collectives(hashes[which], count, ranges, [&](auto... of) { enqueue(communicator, of...); });
      communicator.finalize();
    } else {
      const auto& plugin = *static_cast<const Profiler5*>(found);
      if (plugin.init(&context, hashes[which], &mask, names[which], 1, 2, rank, nullptr) != success) fail("init");
      Communicator<Profiler5, Descriptor5> communicator(plugin, context, mask);
      if (communicator.start(net_plugin) != nullptr) fail("an event that was not asked for has a handle");
      collectives(hashes[which], count, ranges, [&](auto... of) { enqueue(communicator, of...); });
      peer5(communicator);
      communicator.finalize();
    }
  });
}

}  // namespace

int main(int argc, char** arguments) {
  const int version = atoi(arguments[1]);
  const std::uint64_t count = strtoull(arguments[2], nullptr, 10);
  const bool ranges = argc > 3;
  if (ranges && !nccl_ranges_begin()) fail("nobody listens to NVTX");
  if (version == 0) {
    both([&](int which) { collectives(hashes[which], count, ranges, [](auto...) {}); });
    return 0;
  }
  const char* path = getenv("NCCL_PROFILER_PLUGIN");
  if (path == nullptr) fail("NCCL_PROFILER_PLUGIN is not set");
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(dlerror());
  use(library, version, count, ranges);
  dlclose(library);
  // Loaded anew, its static memory starts again; here nothing but that it still works.
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(dlerror());
  use(library, version, 0, ranges);
  dlclose(library);
  return 0;
}
