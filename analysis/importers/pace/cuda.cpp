// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/pace/cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "analysis/importers/cuda_names.h"

namespace paceline::analysis {
namespace {

using format::EventType;
using format::Slot;
using format::unpack;
namespace events = format::events;

std::uint64_t grow(std::uint64_t ticks, std::uint64_t duration) {
  constexpr std::uint64_t most = (std::uint64_t{1} << 56) - 1;  // of a damaged file
  return duration > most - std::min(ticks, most) ? most : ticks + duration;
}

// Cuts a call that seems to cross an edge. The shorter of the two parts was the clock's error.
void cut(std::span<const std::int64_t> edges, std::int64_t& start, std::int64_t& end) {
  auto edge = std::ranges::upper_bound(edges, start);
  const auto last = std::ranges::lower_bound(edges, end);
  for (; edge < last; ++edge) {
    if (*edge - start <= end - *edge) {
      start = *edge;
    } else {
      end = *edge;
      return;
    }
  }
}

}  // namespace

PaceCuda::PaceCuda(PaceContext& context) : context_(context), rank_(context.rank) {
  define();
  name_by_nvtx();
  collect();
  if (events_ > 0) join_nccl();
}

void PaceCuda::define() {
  const PaceDefinitions& definitions = context_.definitions;
  const auto named = [&](std::uint32_t id) { return rank_.names().intern(definitions.name(id)); };
  context_.events.each(PaceEvents::Part::definitions, [&](const Slot& head) {
    switch (type_of(head)) {
      case EventType::cuda_function: {
        const auto function = unpack<events::CudaFunction>(&head);
        functions_[{function.api, function.function}] = named(function.name);
        break;
      }
      case EventType::cuda_stream: {
        const auto stream = unpack<events::CudaStream>(&head);
        streams_[stream.stream] = {stream.device, stream.context, stream.number, named(stream.name)};
        break;
      }
      case EventType::cuda_handle: {
        const auto handle = unpack<events::CudaHandle>(&head);
        handles_[{handle.context, handle.stream}] = handle.handle;
        break;
      }
      case EventType::cuda_kernel: {
        const auto kernel = unpack<events::CudaKernel>(&head);
        const std::string name = demangled(definitions.name(kernel.name));
        const auto shape = [&](std::uint32_t x, std::uint32_t y, std::uint32_t z) {
          return rank_.names().intern(fmt::format("{}×{}×{}", x, y, z));
        };
        kernels_[kernel.kernel] = {rank_.names().intern(name.empty() ? "kernel" : name),
                                   shape(kernel.grid_x, kernel.grid_y, kernel.grid_z),
                                   shape(kernel.block_x, kernel.block_y, kernel.block_z),
                                   kernel.registers,
                                   std::uint64_t{kernel.static_shared} + kernel.dynamic_shared,
                                   name.find("nccl") != std::string::npos};
        break;
      }
      default:
        break;
    }
  });
}

// Names that the program gave by nvtxNameCudaStream, nvtxNameCuStream and nvtxNameCuContext, in NVTX's classes 4 (the
// driver's) and 5 (the runtime's). If an object was destroyed and created again under one handle, the last name is
// taken.
void PaceCuda::name_by_nvtx() {
  const PaceDefinitions& definitions = context_.definitions;
  constexpr std::uint32_t driver_context = 4 << 16 | 2, driver_stream = 4 << 16 | 3, runtime_stream = 5 << 16 | 1;
  constexpr std::uint32_t the_context_itself = ~std::uint32_t{0};
  const auto name_of = [&](std::uint32_t type, std::uint64_t handle) {
    const auto found = definitions.resources.find({type, handle});
    return found == definitions.resources.end() ? NameId{0} : rank_.names().intern(definitions.name(found->second));
  };
  for (const auto& [owner, handle] : handles_) {
    if (owner.second == the_context_itself) contexts_[owner.first] = name_of(driver_context, handle);
  }
  for (auto& [number, stream] : streams_) {
    const auto handle = handles_.find({stream.context, stream.number});
    if (handle == handles_.end()) continue;
    for (const std::uint32_t type : {runtime_stream, driver_stream}) {
      if (const NameId name = name_of(type, handle->second)) stream.name = name;
    }
  }
}

void PaceCuda::collect() {
  context_.events.each(PaceEvents::Part::cuda, [&](const Slot& head) {
    if (family_of(type_of(head)) != format::Family::cuda) return;
    ++events_;
    const std::uint64_t begin = ticks_of(head), duration = (&head)[1].high;
    const std::int64_t start_ns = context_.time(begin), end_ns = context_.time(grow(begin, duration));
    const auto ran = [&](const auto& event) { ran_[event.stream].push_back({start_ns, end_ns, event}); };
    switch (type_of(head)) {
      case EventType::cuda_call: {
        const auto call = unpack<events::CudaCall>(&head);
        calls_[call.thread].push_back({start_ns, end_ns, call.function, call.api, call.correlation, call.result});
        break;
      }
      case EventType::cuda_kernel_run:
        ran(unpack<events::CudaKernelRun>(&head));
        break;
      case EventType::cuda_copy:
        ran(unpack<events::CudaCopy>(&head));
        break;
      case EventType::cuda_set:
        ran(unpack<events::CudaSet>(&head));
        break;
      case EventType::cuda_graph:
        ran(unpack<events::CudaGraph>(&head));
        break;
      case EventType::cuda_wait: {
        const auto wait = unpack<events::CudaWait>(&head);
        if (wait.stream != 0) waited_for_[wait.correlation] = wait.stream;
        break;
      }
      case EventType::cuda_overhead:
        overheads_.push_back({start_ns, end_ns, unpack<events::CudaOverhead>(&head).kind});
        break;
      default:
        break;
    }
  });
}

void PaceCuda::join_nccl() {
  std::unordered_map<std::uint32_t, const Ran*> kernels;  // by correlation
  for (const auto& [stream, all] : ran_) {
    for (const Ran& ran : all) {
      const auto* run = std::get_if<events::CudaKernelRun>(&ran.event);
      if (run == nullptr) continue;
      const auto kernel = kernels_.find(run->kernel);
      if (kernel == kernels_.end() || !kernel->second.nccl) continue;
      if (run->graph != 0) {  // graphs are not launched by calls of NCCL
        nccl_kernels_of_graphs_.push_back({ran.start_ns, ran.start_ns, ran.end_ns});
      } else {
        kernels[run->correlation] = &ran;
      }
    }
  }
  std::ranges::sort(nccl_kernels_of_graphs_, {}, &Launch::time_ns);
  if (kernels.empty()) return;
  for (const auto& [thread, calls] : calls_) {
    std::vector<Launch>& launches = nccl_launches_[thread];
    for (const Call& call : calls) {
      const auto found = kernels.find(call.correlation);
      if (found == kernels.end()) continue;
      launches.push_back({call.start_ns, found->second->start_ns, found->second->end_ns});
      kernels.erase(found);  // the driver's call inside the runtime's has the same correlation
    }
    std::ranges::sort(launches, {}, &Launch::time_ns);
  }
}

const std::vector<PaceCuda::Launch>& PaceCuda::nccl_launches(std::uint64_t thread) const {
  static const std::vector<Launch> none;
  const auto found = nccl_launches_.find(thread);
  return found != nccl_launches_.end() ? found->second : none;
}

void PaceCuda::add_calls(std::uint64_t thread, std::span<const std::int64_t> edges, TrackBuilder& track) {
  const auto found = calls_.find(thread);
  if (found == calls_.end()) return;
  const NameId correlation = rank_.names().intern("correlation"), result = rank_.names().intern("result"),
               waited_for = rank_.names().intern("stream");
  for (Call& call : found->second) {
    cut(edges, call.start_ns, call.end_ns);
    const auto function = functions_.find({call.api, call.function});
    const bool named = function != functions_.end() && function->second != 0;
    const NameId name =
        named
            ? function->second
            : rank_.names().intern(fmt::format("CUDA {} call {}", call.api == 0 ? "runtime" : "driver", call.function));
    const bool synchronizes = waits(rank_.names()[name]);
    const char* category = synchronizes ? "synchronization" : call.api == 0 ? "runtime" : "driver";
    const std::uint32_t slice = track.add_slice(call.start_ns, call.end_ns, rank_.names()[name], "cuda", category);
    track.varying_argument(slice, correlation, call.correlation);
    if (call.result != 0) track.argument(slice, result, call.result);
    const auto wait = synchronizes ? waited_for_.find(call.correlation) : waited_for_.end();
    if (wait != waited_for_.end()) track.argument(slice, waited_for, streams_[wait->second].number);
  }
  calls_.erase(found);
}

std::uint32_t PaceCuda::add(const Ran& ran, std::uint32_t correlation, std::uint32_t graph, NameId name,
                            std::string_view category, TrackBuilder& track) {
  Names& names = rank_.names();
  const std::uint32_t slice = track.add_slice(ran.start_ns, ran.end_ns, names[name], "cuda", category);
  track.varying_argument(slice, names.intern("correlation"), correlation);
  if (graph != 0) track.argument(slice, names.intern("graph"), graph);
  return slice;
}

void PaceCuda::add(const Ran& ran, const events::CudaKernelRun& run, Device, TrackBuilder& track) {
  Names& names = rank_.names();
  const auto found = kernels_.find(run.kernel);
  const NameId name = found != kernels_.end() ? found->second.name : names.intern("kernel");
  const std::uint32_t slice = add(ran, run.correlation, run.graph, name, "kernel", track);
  if (found == kernels_.end()) return;
  const Kernel& kernel = found->second;
  track.text_argument(slice, names.intern("grid"), kernel.grid);
  track.text_argument(slice, names.intern("block"), kernel.block);
  track.argument(slice, names.intern("registers"), kernel.registers);
  if (kernel.shared != 0) track.argument(slice, names.intern("shared"), kernel.shared);
}

void PaceCuda::add(const Ran& ran, const events::CudaCopy& copy, Device device, TrackBuilder& track) {
  Names& names = rank_.names();
  const std::uint32_t slice =
      add(ran, copy.correlation, copy.graph, names.intern(copy_name(copy.kind)), "memcpy", track);
  track.argument(slice, names.intern("bytes"), copy.bytes);
  const bool between_devices = copy.kind == 10;
  const Device from = between_devices ? copy.from_device : device, to = between_devices ? copy.to_device : device;
  track.text_argument(slice, names.intern("from"), names.intern(memory_text(copy.from, from)));
  track.text_argument(slice, names.intern("to"), names.intern(memory_text(copy.to, to)));
}

void PaceCuda::add(const Ran& ran, const events::CudaSet& set, Device device, TrackBuilder& track) {
  Names& names = rank_.names();
  const std::uint32_t slice = add(ran, set.correlation, set.graph, names.intern("Memset"), "memset", track);
  track.argument(slice, names.intern("bytes"), set.bytes);
  const std::string memory = memory_text(static_cast<std::uint32_t>(set.memory_kind), device);
  track.text_argument(slice, names.intern("to"), names.intern(memory));
}

void PaceCuda::add(const Ran& ran, const events::CudaGraph& graph, Device, TrackBuilder& track) {
  const NameId name = rank_.names().intern(fmt::format("graph {}", graph.graph));
  add(ran, graph.correlation, graph.graph, name, "graph", track);
}

void PaceCuda::add_tracks(const std::string& process) {
  while (!calls_.empty()) {
    const std::uint64_t thread = calls_.begin()->first;
    add_calls(thread, {}, rank_.add_track(TrackKind::thread, fmt::format("{}thread {}", process, thread), thread));
  }
  for (const auto& [number, all] : ran_) {
    const auto found = streams_.find(number);
    std::string label = "GPU, stream not known";
    Device device;
    if (found != streams_.end()) {
      const Stream& stream = found->second;
      device = stream.device;
      label = fmt::format("GPU {} stream {}", stream.device, stream.number);
      // Streams are numbered for each context. Most programs have one context for each device.
      const bool other_context = std::ranges::any_of(streams_, [&](const auto& other) {
        return other.second.device == stream.device && other.second.context < stream.context;
      });
      const auto context = contexts_.find(stream.context);
      if (context != contexts_.end() && context->second != 0) {
        label += fmt::format(" context {}", rank_.names()[context->second]);
      } else if (other_context) {
        label += fmt::format(" context {}", stream.context);
      }
      if (stream.name != 0) label += fmt::format(" ({})", rank_.names()[stream.name]);
    }
    TrackBuilder& track = rank_.add_track(TrackKind::stream, process + label, number);
    for (const Ran& ran : all) {
      std::visit([&](const auto& event) { add(ran, event, device, track); }, ran.event);
    }
  }
  if (overheads_.empty()) return;
  TrackBuilder& track = rank_.add_track(TrackKind::thread, process + "CUPTI overhead");
  for (const Overhead& overhead : overheads_) {
    track.add_slice(overhead.start_ns, overhead.end_ns, overhead_name(overhead.kind), "cuda", "overhead");
  }
}

}  // namespace paceline::analysis
