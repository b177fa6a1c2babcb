// SPDX-License-Identifier: Apache-2.0
// The recorder's table of functions for its other libraries.
#include "profiler/inject/event_sink.h"

#include "profiler/inject/buffer/names.h"
#include "profiler/inject/buffer/writer.h"
#include "profiler/inject/cupti_calls.h"
#include "profiler/inject/process/closers.h"
#include "profiler/inject/process/lifecycle.h"
#include "profiler/inject/system/say.h"

namespace paceline::inject {

std::atomic<const paceline_cupti_watcher*> cupti_watcher{nullptr};

namespace {

int open() { return open_recorder() ? 1 : 0; }
int is_recording() { return recording() ? 1 : 0; }
std::uint64_t ticks_now() { return ticks(); }
double frequency() { return clock_state.ticks_per_second; }

std::uint32_t intern_text(const char* text, size_t length) {
  return text != nullptr && file_is_open() ? intern(std::string_view(text, length)) : 0;
}

void put(Slot* slot, std::uint64_t at, std::uint32_t type, std::uint64_t low, const std::uint64_t* words,
         std::uint32_t slots) {
  for (std::uint32_t i = 0; i < slots; ++i) slot[1 + i] = {words[2 * i], words[2 * i + 1]};
  publish(slot, 1 + slots, static_cast<EventType>(type), low, at < start_ticks ? start_ticks : at);
}

// Another library may have another version. A type with an unexpected number of slots would make the rest of the chunk
// unreadable.
bool fits(std::uint32_t type, std::uint64_t low, std::uint32_t slots) {
  return type < 256 && format::extension_slots(Slot{type, low}) == slots;
}

int emit_words(std::uint64_t at, std::uint32_t type, std::uint64_t low, const std::uint64_t* words,
               std::uint32_t slots) {
  if (!file_is_open() || !fits(type, low, slots)) return 0;
  const ReentrancyGuard guard;
  if (guard.is_nested()) {
    drop_nested_event();
    return 0;
  }
  Slot* slot = claim(1 + slots, priority_of(static_cast<EventType>(type)));
  if (slot == nullptr) return 0;
  put(slot, at, type, low, words, slots);
  return 1;
}

int define(std::uint32_t type, std::uint64_t low, const std::uint64_t* words, std::uint32_t slots) {
  if (!file_is_open() || !fits(type, low, slots)) return 0;
  const ReentrancyGuard guard;
  if (guard.is_nested()) return 0;
  Slot* slot = claim_surely(1 + slots);
  if (slot == nullptr) return 0;
  put(slot, ticks(), type, low, words, slots);
  return 1;
}

void count_lost(std::uint32_t cause, std::uint64_t events) {
  if (cause <= static_cast<std::uint32_t>(format::DropCause::interrupted))
    count_dropped(static_cast<format::DropCause>(cause), events);
}

void watch_cupti(const paceline_cupti_watcher* watcher) { cupti_watcher.store(watcher, std::memory_order_release); }

void say_line(const char* text) { say("%s", text); }

}  // namespace
}  // namespace paceline::inject

extern "C" {
// Declared first, because a const is local to its file otherwise.
extern __attribute__((visibility("default"))) const struct paceline_event_sink_v1 paceline_event_sink_v1;
const struct paceline_event_sink_v1 paceline_event_sink_v1 = {
    sizeof(struct paceline_event_sink_v1), paceline::inject::open,
    paceline::inject::is_recording,        paceline::inject::ticks_now,
    paceline::inject::frequency,           paceline::inject::intern_text,
    paceline::inject::emit_words,          paceline::inject::define,
    paceline::inject::count_lost,          paceline::inject::say_line,
    paceline::inject::call_at_close,       paceline::inject::watch_cupti,
};
}
