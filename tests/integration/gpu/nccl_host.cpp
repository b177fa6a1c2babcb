// usage: nccl_host VERSION COUNT: calls the profiler plugin in $NCCL_PROFILER_PLUGIN as NCCL of that version of the
// interface does: two communicators, each on a thread of its own, COUNT collectives each, and unloads it in between.
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

void collective4(Communicator<Profiler4, Descriptor4>& communicator, std::uint64_t sequence) {
  void* plan = communicator.start(group);
  Descriptor4 of{};
  of.kind = collective;
  of.parent = plan;
  fill(of.collective, {"AllReduce"}, sequence, 262144);
  void* work = communicator.start(of);
  communicator.stop(work);
  communicator.stop(plan);
  communicator.channels(work);
  communicator.proxy(work);
}

void collective5(Communicator<Profiler5, Descriptor5>& communicator, std::uint64_t sequence) {
  Descriptor5 of{};
  of.kind = group_api;
  of.group_api = {false, 1};
  void* api_group = communicator.start(of);
  of = {};
  of.kind = collective_api;
  of.parent = api_group;
  of.collective_api = {"AllReduce", 262144, "ncclFloat32", 0, nullptr, false};
  void* api = communicator.start(of);
  communicator.stop(api);
  void* launch = communicator.start(kernel_launch);
  communicator.stop(launch);
  void* plan = communicator.start(group);
  of = {};
  of.kind = collective;
  of.parent = api;
  fill(of.collective, {"AllReduce"}, sequence, 262144, plan);
  void* work = communicator.start(of);
  communicator.stop(work);
  communicator.stop(plan);
  communicator.stop(api_group);
  communicator.channels(work);
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

template <class Body>
void both(Body&& body) {
  std::thread first([&] { body(0); }), second([&] { body(1); });
  first.join();
  second.join();
}

constexpr std::uint64_t hashes[] = {0xfeed'0000'0000'0001, 0xfeed'0000'0000'0002};
const char* const names[] = {"data parallel", nullptr};

void use(void* library, int version, std::uint64_t count) {
  const char* place = getenv("RANK");
  const int rank = place != nullptr ? atoi(place) : 0;
  const std::string symbol = "ncclProfiler_v" + std::to_string(version);
  void* found = dlsym(library, symbol.c_str());
  if (found == nullptr) fail(dlerror());
  both([&](int which) {
    void* context = nullptr;
    int mask = 0;
    if (version == 4) {
      const auto& plugin = *static_cast<const Profiler4*>(found);
      if (plugin.init(&context, &mask, names[which], hashes[which], 1, 2, rank, nullptr) != success) fail("init");
      Communicator<Profiler4, Descriptor4> communicator(plugin, context, mask);
      for (std::uint64_t i = 0; i < count; ++i) collective4(communicator, i);
      communicator.finalize();
    } else {
      const auto& plugin = *static_cast<const Profiler5*>(found);
      if (plugin.init(&context, hashes[which], &mask, names[which], 1, 2, rank, nullptr) != success) fail("init");
      Communicator<Profiler5, Descriptor5> communicator(plugin, context, mask);
      if (communicator.start(net_plugin) != nullptr) fail("an event that was not asked for has a handle");
      for (std::uint64_t i = 0; i < count; ++i) collective5(communicator, i);
      peer5(communicator);
      communicator.finalize();
    }
  });
}

}  // namespace

int main(int, char** arguments) {
  const char* path = getenv("NCCL_PROFILER_PLUGIN");
  if (path == nullptr) fail("NCCL_PROFILER_PLUGIN is not set");
  const int version = atoi(arguments[1]);
  const std::uint64_t count = strtoull(arguments[2], nullptr, 10);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(dlerror());
  use(library, version, count);
  dlclose(library);
  // Loaded anew, its static memory starts again; here nothing but that it still works.
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(dlerror());
  use(library, version, 0);
  dlclose(library);
  return 0;
}
