// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/buffer/names.h"

#define XXH_INLINE_ALL
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>

#include <atomic>

#include "profiler/format/iteration_rules.h"
#include "profiler/inject/buffer/emit_event.h"
#include "profiler/inject/system/settings.h"
#include "profiler/launch/environment.h"

namespace paceline::inject {
namespace {

struct Name {
  std::uint32_t id;
  std::uint32_t length;
  char text[];
};

// Open addressing at most half full; never shrinks. `hash` is stored last, and 0 means empty.
struct Entry {
  std::atomic<std::uint64_t> hash;
  const Name* name;
};
constexpr std::uint32_t entries = 2 * most_names;

std::atomic<Entry*> table{nullptr};
pthread_mutex_t insertion = PTHREAD_MUTEX_INITIALIZER;
std::uint32_t count = 0;
const Name** by_id =
    nullptr;  // [id - 1]; the table is large and nearly empty, so to walk through it takes milliseconds
char* arena = nullptr;
std::size_t arena_left = 0;
NameListener* name_listener = nullptr;
std::size_t arena_bytes = 0;  // of all blocks; bounded by Settings::names_bytes

void* pages(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

const Name* find(const Entry* in, std::uint64_t hash, std::string_view text) {
  for (std::uint32_t at = hash % entries;; at = (at + 1) % entries) {
    const std::uint64_t there = in[at].hash.load(std::memory_order_acquire);
    if (there == 0) return nullptr;
    if (there != hash) continue;
    const Name* name = in[at].name;
    if (name->length == text.size() && memcmp(name->text, text.data(), text.size()) == 0) return name;
  }
}

Name* allocate(std::size_t length) {
  const std::size_t bytes = (sizeof(Name) + length + 7) & ~std::size_t{7};
  if (bytes > arena_left) {
    constexpr std::size_t block = std::size_t{1} << 20;
    arena_bytes += block;
    arena = static_cast<char*>(pages(block));
    arena_left = arena != nullptr ? block : 0;
    if (arena == nullptr) return nullptr;
  }
  auto* name = reinterpret_cast<Name*>(arena);
  arena += bytes;
  arena_left -= bytes;
  return name;
}

// Called with the lock held.
std::uint32_t insert(std::uint64_t hash, std::string_view text) {
  Entry* in = table.load(std::memory_order_relaxed);
  if (in == nullptr) {
    in = static_cast<Entry*>(pages(entries * sizeof(Entry)));
    by_id = static_cast<const Name**>(pages(most_names * sizeof(const Name*)));
    if (in == nullptr || by_id == nullptr) return 0;
    table.store(in, std::memory_order_release);
  }
  if (const Name* known = find(in, hash, text)) return known->id;
  Name* name = allocate(text.size());
  if (name == nullptr) return 0;
  const std::uint32_t id = count + 1;
  if (!emit_text(EventType::name, id | std::uint64_t{text.size()} << 32, text)) return 0;
  name->id = id;
  name->length = static_cast<std::uint32_t>(text.size());
  memcpy(name->text, text.data(), text.size());
  std::atomic_ref<const Name*>(by_id[count]).store(name, std::memory_order_release);
  ++count;
  if (name_listener != nullptr) name_listener(id, text);
  std::uint32_t at = hash % entries;
  while (in[at].hash.load(std::memory_order_relaxed) != 0) at = (at + 1) % entries;
  in[at].name = name;
  in[at].hash.store(hash, std::memory_order_release);
  return id;
}

// Cuts a long text before a whole UTF-8 character and marks the cut.
std::uint32_t intern_cut(std::string_view text) {
  static constexpr std::string_view mark = "…";
  static thread_local char* place = nullptr;
  if (place == nullptr) place = static_cast<char*>(pages(longest_name));
  if (place == nullptr) return 0;
  std::size_t kept = longest_name - mark.size();
  while (kept > 0 && (static_cast<unsigned char>(text[kept]) & 0xc0) == 0x80) --kept;
  memcpy(place, text.data(), kept);
  memcpy(place + kept, mark.data(), mark.size());
  return intern(std::string_view(place, kept + mark.size()));
}

// The room that is kept for the two names below.
constexpr std::uint32_t overflow_names = 2;
constexpr std::size_t overflow_bytes = 512, longest_pattern = 256;

// A pattern fits itself without its stars. Called with the lock held.
std::string_view overflow_name_for(std::string_view text) {
  const char* pattern = text_or(record::env_iteration_name, nullptr);
  if (pattern == nullptr) return format::is_iteration_name(text) ? overflow_iteration_name : overflow_name;
  static char without_stars[longest_pattern];
  static std::size_t length = 0;
  if (length == 0) {
    for (const char* at = pattern; *at != '\0' && length < sizeof without_stars; ++at) {
      if (*at != '*') without_stars[length++] = *at;
    }
  }
  const std::string_view name(without_stars, length);
  return length > 0 && format::fits_pattern(pattern, text) && format::fits_pattern(pattern, name) ? name
                                                                                                  : overflow_name;
}

}  // namespace

std::uint32_t intern(std::string_view text) {
  if (text.empty()) return 0;
  if (text.size() > longest_name) return intern_cut(text);
  std::uint64_t hash = XXH3_64bits(text.data(), text.size());
  if (hash == 0) hash = 1;
  if (const Entry* in = table.load(std::memory_order_acquire)) {
    if (const Name* name = find(in, hash, text)) return name->id;
  }
  const ReentrancyGuard guard;  // no signal handler of this thread may wait for the lock
  pthread_mutex_lock(&insertion);
  std::uint32_t id = 0;
  const bool fits = count + overflow_names < most_names &&
                    (arena_bytes < settings.names_bytes || text.size() + overflow_bytes < arena_left);
  const std::string_view instead = fits ? text : overflow_name_for(text);
  if (fits || text == instead) {
    id = insert(hash, text);
    pthread_mutex_unlock(&insertion);
  } else {
    pthread_mutex_unlock(&insertion);
    count_dropped(format::DropCause::too_many_names);
    id = intern(instead);
  }
  return id;
}

void set_name_listener(NameListener* listener) { name_listener = listener; }

std::string_view name_of(std::uint32_t id) {
  if (id == 0 || id > most_names || by_id == nullptr) return {};
  const Name* name = std::atomic_ref<const Name*>(by_id[id - 1]).load(std::memory_order_acquire);
  return name == nullptr ? std::string_view() : std::string_view(name->text, name->length);
}

void reset_names_in_child() { pthread_mutex_init(&insertion, nullptr); }

void repeat_names() {
  for (std::uint32_t at = 0; at < count; ++at) {
    const Name* name = by_id[at];
    if (name == nullptr) continue;  // another thread of the parent was in the middle of it
    const std::string_view text(name->text, name->length);
    emit_text(EventType::name, name->id | std::uint64_t{name->length} << 32, text);
    if (name_listener != nullptr) name_listener(name->id, text);
  }
}

std::string_view to_utf8(const wchar_t* text, char (&utf8)[longest_wide]) {
  std::size_t size = 0;
  for (; *text != L'\0' && size + 4 <= sizeof utf8; ++text) {
    auto code = static_cast<std::uint32_t>(*text);
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) code = 0xfffd;
    const auto put = [&](std::uint32_t byte) { utf8[size++] = static_cast<char>(byte); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xc0 | code >> 6);
      put(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
      put(0xe0 | code >> 12);
      put(0x80 | (code >> 6 & 0x3f));
      put(0x80 | (code & 0x3f));
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
      put(0x80 | (code >> 6 & 0x3f));
      put(0x80 | (code & 0x3f));
    }
  }
  return {utf8, size};
}

std::uint32_t intern(const wchar_t* text) {
  char utf8[longest_wide];
  return intern(to_utf8(text, utf8));
}

void record_setting(std::string_view key, std::string_view value) {
  const std::uint32_t name = intern(key);
  emit_surely(events::Setting{.key = name, .value = intern(value)});
}

}  // namespace paceline::inject
