// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/system/settings.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "profiler/format/layout.h"
#include "profiler/inject/system/say.h"
#include "profiler/launch/environment.h"

namespace paceline::inject {

Settings settings;

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;
// A program that makes 5 million MPI calls per second on a busy machine fills 16 MiB while the drain waits for a CPU.
constexpr std::size_t default_live = 32 * mebibyte, default_memory = 64 * mebibyte;
// For the full table of names, the encoder and the library itself.
constexpr std::size_t fixed_memory = 12 * mebibyte;

void read_sizes() {
  const std::size_t memory = std::max(number_or(record::env_max_memory_bytes, default_memory), std::uint64_t{mebibyte});
  const bool buffer_given = text_or(record::env_buffer_bytes, nullptr) != nullptr;
  std::size_t live = number_or(record::env_buffer_bytes, default_live);
  if (!buffer_given) live = std::min(live, memory / 2);
  // A file with a limit needs room for blocks too.
  if (settings.max_size > 0) live = std::min(live, static_cast<std::size_t>(settings.max_size / 2));
  const std::size_t chunks = (live + format::chunk_bytes - 1) / format::chunk_bytes;
  settings.live_bytes =
      std::clamp<std::size_t>(chunks, 4, format::max_live_bytes / format::chunk_bytes) * format::chunk_bytes;
  const std::size_t used = settings.live_bytes + fixed_memory;
  settings.names_bytes = memory > used + mebibyte ? memory - used : mebibyte;
}

}  // namespace

const char* text_or(const char* variable, const char* otherwise) {
  const char* text = getenv(variable);
  return text != nullptr && *text != '\0' ? text : otherwise;
}

bool is_switched_on(const char* variable) { return strcmp(text_or(variable, "0"), "1") == 0; }

std::uint64_t number_or(const char* variable, std::uint64_t otherwise) {
  const char* text = text_or(variable, nullptr);
  if (text == nullptr) return otherwise;
  char* end = nullptr;
  const std::uint64_t value = strtoull(text, &end, 10);
  if (*end == '\0' && *text != '-') return value;
  say("%s=%s is not a whole number; the variable is ignored", variable, text);
  return otherwise;
}

std::int64_t milliseconds_in(const char* variable) {
  constexpr std::uint64_t a_century = 3'155'760'000'000;
  return static_cast<std::int64_t>(std::min(number_or(variable, 0), a_century) * 1'000'000);
}

void read_settings() {
  settings = {};
  settings.ring_ns = milliseconds_in(record::env_ring_ms);
  settings.max_size = number_or(record::env_max_size_bytes, 0);
  read_sizes();
  settings.delay_ns = milliseconds_in(record::env_delay_ms);
  settings.duration_ns = milliseconds_in(record::env_duration_ms);
  const char* children = text_or(record::env_children, "");
  settings.children = strcmp(children, "1") == 0   ? Children::all
                      : strcmp(children, "0") == 0 ? Children::none
                                                   : Children::workers;
  settings.ring_signal = static_cast<int>(number_or(record::env_ring_signal, SIGUSR2));
  if (settings.ring_signal >= NSIG) settings.ring_signal = 0;
  settings.lossless = is_switched_on(record::env_lossless);
}

}  // namespace paceline::inject
