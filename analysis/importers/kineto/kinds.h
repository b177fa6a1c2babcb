// SPDX-License-Identifier: Apache-2.0
// What PyTorch's profiler means by its categories, names and arguments, in whatever format they were written.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/trace/builder.h"

namespace paceline::analysis::kineto {

// What an event's category makes of it.
enum class EventClass : std::uint8_t {
  other,    // of a program that is not PyTorch
  torch,    // operators, annotations
  frame,    // Python functions
  runtime,  // calls of CUDA's runtime
  driver,   // calls of CUDA's driver
  kernel,
  copy,
  set,
  gpu_annotation,  // a range that the profiler projects onto a stream
  gpu_wait,        // a stream or a context that waits (cuda_sync)
  overhead,        // of the profiler
  span,            // the whole time of the recording
};
EventClass class_of(std::string_view category);
// True of work of a device: kernels, copies and fills.
inline bool is_device_work(EventClass c) {
  return c == EventClass::kernel || c == EventClass::copy || c == EventClass::set;
}

// The track of a thread or stream on which such an event goes. Python functions have rows of their own: an annotation
// begins inside the call of `__enter__` and outlives it.
enum Group : std::uint8_t { host, stream, annotations, waits, frames, group_count };
Group group_of(EventClass event_class);

struct CopiedMemory {
  std::string from, to;  // "Pageable"
};
// The kinds of memory as arguments; those of the device have its number.
std::vector<Argument> memory_arguments(Names& names, const CopiedMemory& memory, std::string_view device);

struct KindInfo {  // a trace may have millions of them
  EventClass event_class = EventClass::other;
  KindId kind = 0;
  bool iteration = false, nccl = false, communication = false, backend_range = false;
  std::unique_ptr<CopiedMemory> memory = {};  // of a copy or a fill
};
// The model's kind for events of this category and name, and what they are. `own_domain` is the domain that Paceline's
// export gives; nullptr for events of others.
KindInfo kind_info(RankBuilder& rank, EventClass event_class, std::string category, std::string name,
                   const std::string* own_domain);

// What becomes of an argument of PyTorch's events: `ignored` where the model has it elsewhere, `varying` where it
// differs from event to event.
enum class Role : std::uint8_t { plain, ignored, varying };
Role role_of(std::string_view key);
// The name that the model has for it.
std::string_view model_key(std::string_view key);

}  // namespace paceline::analysis::kineto
