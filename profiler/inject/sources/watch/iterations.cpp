// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/watch/iterations.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "profiler/format/iteration_rules.h"
#include "profiler/inject/buffer/names.h"
#include "profiler/inject/process/control.h"
#include "profiler/inject/process/ring.h"
#include "profiler/inject/sources/scheduler/iteration_sums.h"
#include "profiler/inject/sources/sources.h"
#include "profiler/inject/sources/watch/hang.h"
#include "profiler/inject/system/settings.h"
#include "profiler/launch/environment.h"

namespace paceline::inject {
namespace {

constexpr std::uint32_t most_categories = 256;
constexpr std::size_t remembered = 101;  // number of durations for the median
constexpr std::size_t fewest = 10;       // a median of fewer is not meaningful

std::atomic<std::uint64_t> names_iterations[most_names / 64 + 1];
std::atomic<std::uint32_t> categories[most_categories];  // domain:16 | category:16, + 1; 0 is none
std::atomic<std::uint32_t> category_count{0};

std::atomic<bool> taken{false};  // a thread has become the one with the iterations
thread_local constinit bool mine __attribute__((tls_model("initial-exec"))) = false;

// The settings from the environment.
struct Wish {
  bool by_iterations = false;  // record iterations `first` to `last`, both included
  std::uint64_t first = 0, last = 0;
  const char* name = nullptr;  // pattern; null: the built-in rules
  std::uint64_t slow_permille = 0;
  bool follow = false;
};
Wish wish;

// Used by that thread only.
struct Current {
  bool open = false, pushed = false;
  std::uint16_t domain = 0;
  std::uint64_t inner = 0;  // open pushes of the domain inside the iteration
  std::uint64_t range = 0;
  std::uint64_t count = 0;  // iterations before this one
  std::uint64_t begin_ticks = 0;
  std::uint64_t durations[remembered] = {};
};
Current current;

bool is_iteration(std::uint64_t scope) {
  const auto name = static_cast<std::uint32_t>(scope);
  if (name <= most_names && (names_iterations[name / 64].load(std::memory_order_relaxed) >> name % 64 & 1) != 0)
    return true;
  const std::uint32_t key = static_cast<std::uint32_t>(scope >> 48) << 16 | (scope >> 32 & 0xffff);
  const std::uint32_t count = std::min(category_count.load(std::memory_order_acquire), most_categories);
  for (std::uint32_t at = 0; at < count; ++at) {
    if (categories[at].load(std::memory_order_relaxed) == key + 1) return true;
  }
  return false;
}

bool begins(std::uint64_t scope) {
  if (!mine) {
    if (taken.load(std::memory_order_relaxed) || !is_iteration(scope) || taken.exchange(true)) return false;
    mine = true;
    return true;
  }
  return !current.open && is_iteration(scope);
}

void begin() {
  current.open = true;
  current.begin_ticks = ticks();
  if (wish.by_iterations && current.count >= wish.first && current.count <= wish.last) {
    set_pause(format::outside_iterations, false);
  }
  note_iteration(true);
  record_iteration_sums();
}

void look_whether_slow(std::uint64_t duration) {
  const auto have = static_cast<std::size_t>(std::min<std::uint64_t>(current.count, remembered));
  if (wish.slow_permille > 0 && have >= fewest) {
    std::uint64_t sorted[remembered];
    std::copy_n(current.durations, have, sorted);
    std::nth_element(sorted, sorted + have / 2, sorted + have);
    const double limit = static_cast<double>(sorted[have / 2]) * static_cast<double>(wish.slow_permille) / 1000;
    if (static_cast<double>(duration) > limit) request_trigger(format::TriggerCause::slow_iteration, current.count);
  }
  current.durations[current.count % remembered] = duration;
}

void end() {
  current.open = false;
  record_iteration_sums();
  look_whether_slow(ticks() - current.begin_ticks);
  if (wish.by_iterations && current.count >= wish.last) {
    set_pause(format::outside_iterations, true);
  }
  ++current.count;
  note_iteration(false);
}

// Ranges that are left out would have to be followed, and their names kept.
bool filters_nvtx() {
  for (const char* list : {record::env_nvtx_domains, record::env_nvtx_exclude_domains, record::env_nvtx_categories,
                           record::env_nvtx_exclude_categories}) {
    if (*text_or(list, "") != '\0') return true;
  }
  return false;
}

void read_wishes() {
  wish.name = text_or(record::env_iteration_name, nullptr);
  wish.slow_permille = number_or(record::env_ring_slow_permille, 0);
  if (const char* text = text_or(record::env_iterations, nullptr)) {
    char* end = nullptr;
    wish.first = strtoull(text, &end, 10);
    wish.last = wish.first;
    if (*end == ':') wish.last = end[1] == '\0' ? ~std::uint64_t{0} : strtoull(end + 1, &end, 10);
    wish.by_iterations = true;
    set_pause(format::outside_iterations, true);
  }
  wish.follow = wish.by_iterations || watches_for_hangs() || (settings.ring_ns > 0 && wish.slow_permille > 0) ||
                (!filters_nvtx() && strcmp(text_or(record::env_scheduler, ""), "0") != 0);
}

// For the analysis, which then takes the same ranges.
void record_iteration_name() {
  if (wish.name != nullptr) record_setting("iteration_name", wish.name);
}

void note_name(std::uint32_t id, std::string_view text) {
  if (!watching() || id > most_names) return;
  const bool matches = wish.name != nullptr ? format::fits_pattern(wish.name, text) : format::is_iteration_name(text);
  if (matches) names_iterations[id / 64].fetch_or(std::uint64_t{1} << id % 64, std::memory_order_relaxed);
}

void forget_iterations() {
  taken = false;
  mine = false;
  current = {};
}

}  // namespace

void watch_push(std::uint64_t scope) {
  const auto domain = static_cast<std::uint16_t>(scope >> 48);
  if (begins(scope)) {
    current.pushed = true;
    current.domain = domain;
    current.inner = 0;
    begin();
  } else if (mine && current.open && current.pushed && current.domain == domain) {
    ++current.inner;
  }
}

void watch_pop(std::uint16_t domain) {
  if (!mine || !current.open || !current.pushed || current.domain != domain) return;
  if (current.inner == 0) {
    end();
  } else {
    --current.inner;
  }
}

void watch_start(std::uint64_t scope, std::uint64_t range) {
  if (!begins(scope)) return;
  current.pushed = false;
  current.range = range;
  begin();
}

void watch_end(std::uint64_t range) {
  if (mine && current.open && !current.pushed && current.range == range) end();
}

void note_category(std::uint16_t domain, std::uint16_t category, std::string_view text) {
  if (!watching() || wish.name != nullptr || !format::is_iteration_category(text)) return;
  const std::uint32_t key = std::uint32_t{domain} << 16 | category;
  const std::uint32_t at = category_count.load(std::memory_order_relaxed);
  for (std::uint32_t known = 0; known < at; ++known) {
    if (categories[known].load(std::memory_order_relaxed) == key + 1) return;
  }
  if (at >= most_categories) return;
  categories[at].store(key + 1, std::memory_order_relaxed);
  category_count.store(at + 1, std::memory_order_release);
}

const Source iterations_source = {
    .start = read_wishes,
    .open = [] { switch_flag(SourceFlag::follows_iterations, wish.follow); },
    .opened = record_iteration_name,
    .name_added = note_name,
    .reset_in_child = forget_iterations,
};

}  // namespace paceline::inject
