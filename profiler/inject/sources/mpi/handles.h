// What the recorder remembers about handles of the program: requests, windows, files.
//
// A table of fixed size, open addressing within a window of 16 places: a handle lies in one of them or is not known. No
// lock, no allocation; putting and taking cost a few tens of nanoseconds at most. Where a window is full its oldest
// entry makes room, so entries that the program never took back cannot fill the table for good.
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/inject/sources/mpi/library.h"

namespace paceline::inject {

struct Remembered {
  std::uint64_t id = 0;         // rises with time: of equal handles the latest is found first
  std::uint64_t facts[3] = {};  // the owner's
};

class HandleTable {
 public:
  struct Place {
    std::atomic<Handle> key{0};  // 0: empty
    std::atomic<std::uint64_t> id{0};
    std::atomic<std::uint64_t> facts[3] = {};
  };

  constexpr HandleTable(Place* places, unsigned bits) : places_(places), bits_(bits) {}

  // `repeats`: an equal handle stays beside it (MPI libraries give operations that are complete at once the same one);
  // else it is replaced. False: not remembered, as other threads were in the way.
  bool put(Handle handle, const Remembered& entry, bool repeats);
  bool find(Handle handle, Remembered& entry) const;
  // Finds and forgets.
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
