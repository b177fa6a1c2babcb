// SPDX-License-Identifier: Apache-2.0
// Tables of facts that the recorder remembers about handles of the program: requests, windows, files.
//
// A table has a fixed size and uses open addressing within a window of 16 places: a handle lies in one of them or is
// unknown. No lock, no allocation; an operation costs a few tens of nanoseconds at most. If a window is full, its
// oldest entry makes room, so entries that are never removed cannot fill the table permanently.
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/inject/sources/mpi/library.h"

namespace paceline::inject {

struct Remembered {
  std::uint64_t id = 0;         // increases with time; the latest of equal handles is found first
  std::uint64_t facts[3] = {};  // meaning: the caller's
};

class HandleTable {
 public:
  struct Place {
    std::atomic<Handle> key{0};  // 0: empty
    std::atomic<std::uint64_t> id{0};
    std::atomic<std::uint64_t> facts[3] = {};
  };

  constexpr HandleTable(Place* places, unsigned bits) : places_(places), bits_(bits) {}

  // Adds an entry. `repeats`: an equal handle stays beside it, because MPI libraries return the same handle for all
  // operations that are complete at once; otherwise it is replaced. Returns false if other threads got in the way.
  bool put(Handle handle, const Remembered& entry, bool repeats);
  bool find(Handle handle, Remembered& entry) const;
  // The oldest entry whose first fact is not 0. Looks at all places.
  bool find_oldest(Remembered& entry) const;
  // Finds an entry and removes it.
  bool take(Handle handle, Remembered& entry);

 private:
  static constexpr std::uint32_t window = 16;
  Place& place(Handle handle, std::uint32_t probe) const;
  Place* latest(Handle handle) const;
  Place* place_for(Handle handle, bool repeats, Handle& there) const;
  static void copy(const Place& from, Remembered& to);

  Place* places_;
  unsigned bits_;
};

}  // namespace paceline::inject
