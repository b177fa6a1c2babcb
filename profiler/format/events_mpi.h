// SPDX-License-Identifier: Apache-2.0
// The values of events: MPI calls, requests, files and windows. See events.h.
#pragma once

#include <cstdint>

#include "profiler/format/event.h"

namespace paceline::format::events {

// MPI calls. `function` is an id of mpi_functions.h. Tag, peer, root and target are those of every MPI library alike.
// The packed structs have 32 bits at an odd place.

struct MpiBegin {
  static constexpr EventType type = EventType::mpi_begin;
  std::uint16_t function = 0;
  std::uint16_t by_tool = 0;  // 1 = another tool's own call, under the PMPI name
  std::uint16_t unused[2] = {};
};

struct MpiEnd {  // ends the latest open call of this track
  static constexpr EventType type = EventType::mpi_end;
  std::uint16_t function = 0;
  std::uint16_t unused[3] = {};
};

struct [[gnu::packed]] MpiBeginPeer {
  static constexpr EventType type = EventType::mpi_begin_peer;
  std::uint16_t function = 0;
  std::int32_t tag = 0;  // -1 = any
  std::uint16_t unused = 0;
  std::uint64_t bytes = 0;
  std::uint32_t communicator = 0;
  std::int32_t peer = 0;  // -1 = any, -2 = nobody
};

struct [[gnu::packed]] MpiBeginColl {
  static constexpr EventType type = EventType::mpi_begin_coll;
  std::uint16_t function = 0;
  std::int32_t root = 0;  // -1 = none
  std::uint16_t unused = 0;
  std::uint64_t bytes = 0;
  std::uint32_t communicator = 0;
  std::uint32_t sequence = 0;  // the number of collectives that began on the communicator before
};

struct [[gnu::packed]] MpiBeginFile {
  static constexpr EventType type = EventType::mpi_begin_file;
  std::uint16_t function = 0;
  std::uint32_t file = 0;
  std::uint16_t unused = 0;
  std::uint64_t bytes = 0;
  std::int64_t offset = 0;  // in units of the file's view; -1 = at a file pointer
};

struct [[gnu::packed]] MpiBeginWindow {
  static constexpr EventType type = EventType::mpi_begin_window;
  std::uint16_t function = 0;
  std::int32_t target = 0;  // -1 = none
  std::uint16_t unused = 0;
  std::uint64_t bytes = 0;
  std::uint32_t window = 0;
  std::uint32_t unused2 = 0;
};

template <EventType event_type>
struct MpiRequest {
  static constexpr EventType type = event_type;
  std::uint64_t request = 0;  // used once in a process
};
using MpiPosted = MpiRequest<EventType::mpi_posted>;        // the open call started what another call completes
using MpiCompleted = MpiRequest<EventType::mpi_completed>;  // the operation is complete when the open call ends

struct MpiFile {
  static constexpr EventType type = EventType::mpi_file;
  std::uint32_t file = 0;
  std::uint32_t path = 0;      // a name
  std::uint64_t identity = 0;  // equal on all members that opened the file together
  std::uint32_t communicator = 0;
  std::uint32_t unused = 0;
};

struct MpiWindow {
  static constexpr EventType type = EventType::mpi_window;
  std::uint32_t window = 0;
  std::uint32_t communicator = 0;
  std::uint64_t identity = 0;
  std::uint64_t bytes = 0;  // of this rank's part
};

}  // namespace paceline::format::events
