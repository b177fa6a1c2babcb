// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/buffer/definitions.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>

#include "profiler/inject/system/settings.h"

namespace paceline::inject {

namespace {

constexpr std::uint32_t most_definitions = 65536;

struct Definition {
  format::EventType type;
  std::uint8_t extensions;
  std::uint64_t low;
  Slot extension[2];
};
std::atomic<Definition*> definitions{nullptr};
std::atomic<std::uint32_t> definition_count{0};

bool is_definition(format::EventType type) {
  return (static_cast<unsigned>(type) < 16 && type != format::EventType::communicator) ||
         format::is_nvtx_definition(type);
}

void remember_definition(format::EventType type, std::uint64_t low, std::span<const Slot> extension) {
  if (settings.children == Children::none || !is_definition(type)) return;
  Definition* list = definitions.load(std::memory_order_acquire);
  if (list == nullptr) {
    void* made = mmap(nullptr, most_definitions * sizeof(Definition), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) return;
    if (definitions.compare_exchange_strong(list, static_cast<Definition*>(made))) {
      list = static_cast<Definition*>(made);
    } else {
      munmap(made, most_definitions * sizeof(Definition));
    }
  }
  const std::uint32_t at = definition_count.fetch_add(1, std::memory_order_relaxed);
  if (at >= most_definitions) return;
  list[at] = {type, static_cast<std::uint8_t>(extension.size()), low, {}};
  std::copy(extension.begin(), extension.end(), list[at].extension);
}

}  // namespace

bool emit_surely(EventType type, std::uint64_t low, std::span<const Slot> extension) {
  const ReentrancyGuard guard;
  remember_definition(type, low, extension);
  const auto slots = static_cast<std::uint32_t>(1 + extension.size());
  Slot* slot = claim_surely(slots);
  if (slot == nullptr) return false;
  std::copy(extension.begin(), extension.end(), slot + 1);
  publish(slot, slots, type, low, ticks());
  return true;
}

void repeat_definitions() {
  const Definition* list = definitions.load(std::memory_order_acquire);
  const std::uint32_t count = definition_count.exchange(0);  // emit_surely() remembers them again
  if (list == nullptr) return;
  for (std::uint32_t at = 0; at < count && at < most_definitions; ++at) {
    const Definition definition = list[at];
    emit_surely(definition.type, definition.low, std::span(definition.extension, definition.extensions));
  }
}

}  // namespace paceline::inject
