// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/kineto/kinds.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "analysis/importers/cuda_names.h"
#include "profiler/format/iteration_rules.h"

namespace paceline::analysis::kineto {
namespace kineto_kinds {

// Arguments that say nothing which the model does not have elsewhere.
constexpr std::array<std::string_view, 25> ignored_arguments{"External id",
                                                             "external id",
                                                             "Ev Idx",
                                                             "Record function id",
                                                             "Python id",
                                                             "Python parent id",
                                                             "Python module id",
                                                             "Input Strides",
                                                             "Concrete Inputs",
                                                             "cbid",
                                                             "queued",
                                                             "device",
                                                             "context",
                                                             "stream",
                                                             "blocks per SM",
                                                             "warps per SM",
                                                             "memory bandwidth (GB/s)",
                                                             "Trace name",
                                                             "Trace iteration",
                                                             "Input Tensors start",
                                                             "Output Tensors start",
                                                             "Kwinputs",
                                                             "begin_ns",
                                                             "end_ns",
                                                             "delta_ns"};
constexpr std::array<std::string_view, 10> varying_arguments{
    "correlation",   "Sequence number", "Seq",     "Comms Id",    "Addr",
    "Fwd thread id", "handle",          "corr_id", "dispatch_id", "wait_on_cuda_event_record_corr_id"};

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace kineto_kinds

EventClass class_of(std::string_view category) {
  constexpr std::pair<std::string_view, EventClass> classes[] = {
      {"cpu_op", EventClass::torch},
      {"kernel", EventClass::kernel},
      {"cuda_runtime", EventClass::runtime},
      {"cuda_driver", EventClass::driver},
      {"python_function", EventClass::frame},
      {"user_annotation", EventClass::torch},
      {"gpu_memcpy", EventClass::copy},
      {"gpu_memset", EventClass::set},
      {"gpu_user_annotation", EventClass::gpu_annotation},
      {"cuda_sync", EventClass::gpu_wait},
      {"overhead", EventClass::overhead},
      {"Trace", EventClass::span},
      {"cpu_instant_event", EventClass::torch},
      {"fwdbwd", EventClass::torch},
      // As PyTorch 1.8 to 1.11 wrote them.
      {"Operator", EventClass::torch},
      {"Kernel", EventClass::kernel},
      {"Runtime", EventClass::runtime},
      {"Memcpy", EventClass::copy},
      {"Memset", EventClass::set},
      // As AMD's rocprofv3 and, with "rocm_" before them, ROCm Systems Profiler write them.
      {"kernel_dispatch", EventClass::kernel},
      {"memory_copy", EventClass::copy},
      {"hip_api", EventClass::runtime},
      {"hsa_api", EventClass::driver},
  };
  if (category.starts_with("rocm_")) category.remove_prefix(5);
  for (const auto& [text, event_class] : classes) {
    if (category == text) return event_class;
  }
  if (category.ends_with("_runtime")) return EventClass::runtime;
  if (category.ends_with("_driver")) return EventClass::driver;
  return EventClass::other;
}

Group group_of(EventClass event_class) {
  if (is_device_work(event_class)) return stream;
  if (event_class == EventClass::gpu_annotation) return annotations;
  if (event_class == EventClass::frame) return frames;
  return event_class == EventClass::gpu_wait ? waits : host;
}

std::vector<Argument> memory_arguments(Names& names, const CopiedMemory& memory, std::string_view device) {
  std::vector<Argument> made;
  const auto add = [&](const char* key, const std::string& kind) {
    if (kind.empty()) return;
    const std::string text = kind == "Device" ? "GPU " + std::string(device) : kineto_kinds::lower_case(kind);
    made.push_back(make_text(names.intern(key), names.intern(text)));
  };
  add("from", memory.from);
  add("to", memory.to);
  return made;
}

KindInfo kind_info(RankBuilder& rank, EventClass event_class, std::string category, std::string name,
                   const std::string* own_domain) {
  KindInfo info{.event_class = event_class};
  const auto domain_and_category = [&]() -> std::pair<const char*, std::string> {
    switch (event_class) {
      case EventClass::runtime:
        return {"cuda", analysis::waits(name) ? "synchronization" : "runtime"};
      case EventClass::driver:
        return {"cuda", analysis::waits(name) ? "synchronization" : "driver"};
      case EventClass::kernel:
        return {"cuda", "kernel"};
      case EventClass::copy:
        return {"cuda", "memcpy"};
      case EventClass::set:
        return {"cuda", "memset"};
      case EventClass::gpu_wait:
        return {"cuda", "wait"};
      case EventClass::overhead:
        return {"cuda", "overhead"};
      case EventClass::torch:
      case EventClass::frame:
      case EventClass::gpu_annotation:
        return {"torch", category};
      default:
        return {"", category};
    }
  };
  auto [domain, model_category] = domain_and_category();
  if (own_domain != nullptr) domain = own_domain->c_str();
  // Paceline's export: the category is the domain where there is none.
  if (own_domain != nullptr && event_class == EventClass::other && model_category == *own_domain)
    model_category.clear();
  if (event_class == EventClass::kernel) {
    name = demangled(name);
    info.nccl = name.find("nccl") != std::string::npos;
  }
  if (event_class == EventClass::copy || event_class == EventClass::set) {  // "Memcpy HtoD (Pageable -> Device)"
    const std::size_t open = name.find(" ("), arrow = name.find(" -> ");
    if (open != name.npos && name.back() == ')') {
      info.memory = std::make_unique<CopiedMemory>();
      std::string memory = name.substr(open + 2, name.size() - open - 3);
      if (arrow != name.npos && arrow > open) {
        info.memory->from = name.substr(open + 2, arrow - open - 2);
        memory = name.substr(arrow + 4, name.size() - arrow - 5);
      }
      info.memory->to = memory;
      name.resize(open);
    }
  }
  if (event_class == EventClass::torch || event_class == EventClass::other) {
    info.iteration = format::is_iteration_name(name);
    info.communication = name == "record_param_comms";
    info.backend_range = name.starts_with("gloo:") || name.starts_with("nccl:");
  }
  info.kind = rank.kind(name, domain, model_category);
  return info;
}

Role role_of(std::string_view key) {
  using namespace kineto_kinds;
  if (std::ranges::find(ignored_arguments, key) != ignored_arguments.end()) return Role::ignored;
  return std::ranges::find(varying_arguments, key) != varying_arguments.end() ? Role::varying : Role::plain;
}

std::string_view model_key(std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> keys[] = {
      {"registers per thread", "registers"},
      {"shared memory", "shared"},
      {"est. achieved occupancy %", "occupancy %"},
      {"Bytes", "bytes"},
      {"copy_bytes", "bytes"},
      {"corr_id", "correlation"},
  };
  for (const auto& [theirs, ours] : keys) {
    if (key == theirs) return ours;
  }
  return key;
}

}  // namespace paceline::analysis::kineto
