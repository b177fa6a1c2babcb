// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/nvtx/filter.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "profiler/inject/buffer/hot.h"
#include "profiler/inject/buffer/names.h"
#include "profiler/inject/buffer/writer.h"
#include "profiler/inject/system/say.h"
#include "profiler/launch/environment.h"

namespace paceline::inject {

PACELINE_HOT bool filters_categories = false;

namespace {

// A list of names from the environment, separated by commas.
struct List {
  char text[4096] = "";

  bool empty() const { return text[0] == '\0'; }
  bool holds(std::string_view name) const {
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t comma = rest.find(',');
      if (rest.substr(0, comma) == name) return true;
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    return false;
  }
  bool holds_number(std::uint32_t number) const {
    char digits[16];
    char* at = digits + sizeof digits;
    do {
      *--at = static_cast<char>('0' + number % 10);
    } while ((number /= 10) != 0);
    return holds({at, static_cast<std::size_t>(digits + sizeof digits - at)});
  }
};
List domains, without_domains, categories, without_categories;
pthread_once_t read_once = PTHREAD_ONCE_INIT;

struct {
  const char *variable, *key;
  List& list;
} const lists[] = {
    {record::env_nvtx_domains, "nvtx_domains", domains},
    {record::env_nvtx_exclude_domains, "nvtx_exclude_domains", without_domains},
    {record::env_nvtx_categories, "nvtx_categories", categories},
    {record::env_nvtx_exclude_categories, "nvtx_exclude_categories", without_categories},
};

void read_lists() {
  for (const auto& [variable, key, list] : lists) {
    const char* given = getenv(variable);
    if (given == nullptr) continue;
    if (strlen(given) < sizeof list.text) {
      strcpy(list.text, given);
    } else {
      say("%s is longer than %zu bytes and is ignored: give fewer names", variable, sizeof list.text - 1);
    }
  }
  filters_categories = !categories.empty() || !without_categories.empty();
}

bool keeps(const List& only, const List& without, bool in_only, bool in_without) {
  return (only.empty() || in_only) && (without.empty() || !in_without);
}

// The categories that a list names: open addressing, filled under a lock and read without one. 0 is an empty place.
constexpr std::uint32_t named_bit = 1, excluded_bit = 2;
constexpr std::uint32_t entries = 4096;
std::atomic<std::uint64_t> table[entries];  // domain:16 | category:16 | 1 << 8 | bits
std::atomic<std::uint32_t> used{0};
pthread_mutex_t insertion = PTHREAD_MUTEX_INITIALIZER;

std::uint32_t key_of(std::uint16_t domain, std::uint16_t category) { return std::uint32_t{domain} << 16 | category; }
std::uint32_t place_of(std::uint32_t key) { return key * 0x9e3779b1U >> 20; }
static_assert(entries == 1U << (32 - 20));

std::uint32_t bits_of(std::uint32_t key) {
  for (std::uint32_t at = place_of(key);; at = (at + 1) % entries) {
    const std::uint64_t there = table[at].load(std::memory_order_acquire);
    if (there == 0) return 0;
    if (there >> 32 == key) return there & 0xff;
  }
}

// The open pushes of one domain on this thread, the innermost in bit 0: 1 = left out.
struct OpenPushes {
  std::uint16_t domain;
  std::uint16_t taken;
  std::uint32_t depth;
  std::uint64_t left_out;
};
constexpr std::uint32_t deepest = 64;
thread_local constinit OpenPushes open_pushes[4] __attribute__((tls_model("initial-exec"))) = {};

OpenPushes* pushes_of(std::uint16_t domain) {
  for (OpenPushes& pushes : open_pushes) {
    if (pushes.taken == 0 || pushes.depth == 0) {
      // This domain's place may follow an empty one.
      for (OpenPushes* other = &pushes; other != open_pushes + std::size(open_pushes); ++other) {
        if (other->depth != 0 && other->domain == domain) return other;
      }
      pushes = {domain, 1, 0, 0};
      return &pushes;
    }
    if (pushes.domain == domain) return &pushes;
  }
  return nullptr;
}

}  // namespace

void record_nvtx_filter() {
  for (const auto& [variable, key, list] : lists) {
    if (!list.empty()) record_setting(key, list.text);
  }
}

void read_nvtx_filter() { pthread_once(&read_once, read_lists); }

bool leaves_out_domain(std::string_view name) {
  if (name.empty()) name = "default";
  return !keeps(domains, without_domains, domains.holds(name), without_domains.holds(name));
}

void filter_category(std::uint16_t domain, std::uint16_t category, std::string_view name) {
  if (!filters_categories || name.empty()) return;
  const std::uint32_t bits =
      (categories.holds(name) ? named_bit : 0) | (without_categories.holds(name) ? excluded_bit : 0);
  if (bits == 0) return;
  const std::uint32_t key = key_of(domain, category);
  pthread_mutex_lock(&insertion);
  if (bits_of(key) == 0 && used.load(std::memory_order_relaxed) < entries / 2) {
    used.fetch_add(1, std::memory_order_relaxed);
    std::uint32_t at = place_of(key);
    while (table[at].load(std::memory_order_relaxed) != 0) at = (at + 1) % entries;
    table[at].store(std::uint64_t{key} << 32 | 0x100 | bits, std::memory_order_release);
  }
  pthread_mutex_unlock(&insertion);
}

bool leaves_out_category(std::uint16_t domain, std::uint16_t category) {
  const std::uint32_t bits = bits_of(key_of(domain, category));
  return !keeps(categories, without_categories,
                (bits & named_bit) != 0 || (category != 0 && categories.holds_number(category)),
                (bits & excluded_bit) != 0 || (category != 0 && without_categories.holds_number(category)));
}

bool leaves_out_push(std::uint16_t domain, std::uint16_t category) {
  OpenPushes* pushes = pushes_of(domain);
  if (pushes == nullptr) return false;
  if (pushes->depth++ >= deepest) return false;
  const bool out = leaves_out_category(domain, category);
  pushes->left_out = pushes->left_out << 1 | (out ? 1 : 0);
  return out;
}

bool leaves_out_pop(std::uint16_t domain) {
  OpenPushes* pushes = pushes_of(domain);
  if (pushes == nullptr || pushes->depth == 0) return false;
  if (--pushes->depth >= deepest) return false;
  const bool out = (pushes->left_out & 1) != 0;
  pushes->left_out >>= 1;
  return out;
}

void reset_nvtx_filter_in_child() { pthread_mutex_init(&insertion, nullptr); }

}  // namespace paceline::inject
