// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/mpi/handles.h"

namespace paceline::inject {
namespace {

constexpr Handle busy = 1;  // being written; no library has such a handle

}  // namespace

HandleTable::Place& HandleTable::place(Handle handle, std::uint32_t probe) const {
  const auto start = static_cast<std::uint32_t>((handle ^ handle >> 32) * 0x9e3779b97f4a7c15 >> (64 - bits_));
  return places_[(start + probe) & ((1u << bits_) - 1)];
}

HandleTable::Place* HandleTable::latest(Handle handle) const {
  Place* found = nullptr;
  for (std::uint32_t probe = 0; probe < window; ++probe) {
    Place& there = place(handle, probe);
    if (there.key.load(std::memory_order_acquire) != handle) continue;
    if (found == nullptr || there.id.load(std::memory_order_relaxed) > found->id.load(std::memory_order_relaxed)) {
      found = &there;
    }
  }
  return found;
}

void HandleTable::copy(const Place& from, Remembered& to) {
  to.id = from.id.load(std::memory_order_relaxed);
  for (int fact = 0; fact < 3; ++fact) to.facts[fact] = from.facts[fact].load(std::memory_order_relaxed);
}

// The place for a handle: that of an equal handle, a free one, or the oldest one. `there` is its present content.
HandleTable::Place* HandleTable::place_for(Handle handle, bool repeats, Handle& there) const {
  Place* into = repeats ? nullptr : latest(handle);
  Place* oldest = nullptr;
  there = handle;
  for (std::uint32_t probe = 0; into == nullptr && probe < window; ++probe) {
    Place& candidate = place(handle, probe);
    there = candidate.key.load(std::memory_order_relaxed);
    if (there == 0) into = &candidate;
    if (oldest == nullptr ||
        candidate.id.load(std::memory_order_relaxed) < oldest->id.load(std::memory_order_relaxed)) {
      oldest = &candidate;
    }
  }
  if (into == nullptr) {
    into = oldest;
    there = into->key.load(std::memory_order_relaxed);
  }
  return into;
}

bool HandleTable::find_oldest(Remembered& entry) const {
  bool found = false;
  for (std::uint32_t at = 0; at < 1u << bits_; ++at) {
    const Handle key = places_[at].key.load(std::memory_order_acquire);
    Remembered there;
    copy(places_[at], there);
    if (key <= busy || there.facts[0] == 0 || (found && there.id > entry.id)) continue;
    if (places_[at].key.load(std::memory_order_acquire) != key) continue;
    entry = there;
    found = true;
  }
  return found;
}

bool HandleTable::put(Handle handle, const Remembered& entry, bool repeats) {
  if (handle <= busy) return false;
  for (int attempt = 0; attempt < 4; ++attempt) {
    Handle there = 0;
    Place* into = place_for(handle, repeats, there);
    if (there == busy || !into->key.compare_exchange_strong(there, busy, std::memory_order_acquire)) continue;
    into->id.store(entry.id, std::memory_order_relaxed);
    for (int fact = 0; fact < 3; ++fact) into->facts[fact].store(entry.facts[fact], std::memory_order_relaxed);
    into->key.store(handle, std::memory_order_release);
    return true;
  }
  return false;
}

bool HandleTable::find(Handle handle, Remembered& entry) const {
  if (handle <= busy) return false;
  const Place* there = latest(handle);
  if (there == nullptr) return false;
  copy(*there, entry);
  return true;
}

bool HandleTable::take(Handle handle, Remembered& entry) {
  if (handle <= busy) return false;
  for (;;) {
    Place* there = latest(handle);
    if (there == nullptr) return false;
    Handle expected = handle;
    if (!there->key.compare_exchange_strong(expected, busy, std::memory_order_acquire)) continue;
    copy(*there, entry);
    there->key.store(0, std::memory_order_release);
    return true;
  }
}

}  // namespace paceline::inject
