// The values of events: MPI calls, requests, files and windows. See events.h.
#pragma once

#include <cstdint>
#include <tuple>

#include "profiler/format/packing.h"

namespace paceline::format::events {

// MPI calls. `function` is an id of mpi_functions.h. Tag, peer, root and target are those of every MPI library alike.

struct MpiBegin {
  static constexpr EventType type = EventType::mpi_begin;
  std::uint16_t function = 0;
  static constexpr auto values() { return std::tuple(low(&MpiBegin::function, 0)); }
};

struct MpiBeginPeer {
  static constexpr EventType type = EventType::mpi_begin_peer;
  std::uint16_t function = 0;
  std::int32_t tag = 0;  // -1 = any
  std::uint64_t bytes = 0;
  std::uint32_t communicator = 0;
  std::int32_t peer = 0;  // -1 = any, -2 = nobody
  static constexpr auto values() {
    return std::tuple(low(&MpiBeginPeer::function, 0), low(&MpiBeginPeer::tag, 16), ext_high(&MpiBeginPeer::bytes, 0),
                      ext_low(&MpiBeginPeer::communicator, 0), ext_low(&MpiBeginPeer::peer, 32));
  }
};

struct MpiBeginColl {
  static constexpr EventType type = EventType::mpi_begin_coll;
  std::uint16_t function = 0;
  std::int32_t root = 0;  // -1 = none
  std::uint64_t bytes = 0;
  std::uint32_t communicator = 0;
  std::uint32_t sequence = 0;  // the number of collectives that began on the communicator before
  static constexpr auto values() {
    return std::tuple(low(&MpiBeginColl::function, 0), low(&MpiBeginColl::root, 16), ext_high(&MpiBeginColl::bytes, 0),
                      ext_low(&MpiBeginColl::communicator, 0), ext_low(&MpiBeginColl::sequence, 32));
  }
};

struct MpiBeginFile {
  static constexpr EventType type = EventType::mpi_begin_file;
  std::uint16_t function = 0;
  std::uint32_t file = 0;
  std::uint64_t bytes = 0;
  std::int64_t offset = 0;  // in units of the file's view; -1 = at a file pointer
  static constexpr auto values() {
    return std::tuple(low(&MpiBeginFile::function, 0), low(&MpiBeginFile::file, 16), ext_high(&MpiBeginFile::bytes, 0),
                      ext_low(&MpiBeginFile::offset, 0));
  }
};

struct MpiBeginWindow {
  static constexpr EventType type = EventType::mpi_begin_window;
  std::uint16_t function = 0;
  std::int32_t target = 0;  // -1 = none
  std::uint64_t bytes = 0;
  std::uint32_t window = 0;
  static constexpr auto values() {
    return std::tuple(low(&MpiBeginWindow::function, 0), low(&MpiBeginWindow::target, 16),
                      ext_high(&MpiBeginWindow::bytes, 0), ext_low(&MpiBeginWindow::window, 0));
  }
};

// Ends the latest open call of this track.
struct MpiEnd {
  static constexpr EventType type = EventType::mpi_end;
  std::uint16_t function = 0;
  static constexpr auto values() { return std::tuple(low(&MpiEnd::function, 0)); }
};

// The open call started an operation that another call completes.
struct MpiPosted {
  static constexpr EventType type = EventType::mpi_posted;
  std::uint64_t request = 0;  // used once in a process
  static constexpr auto values() { return std::tuple(low(&MpiPosted::request, 0)); }
};

// The operation is complete when the open call ends.
struct MpiCompleted {
  static constexpr EventType type = EventType::mpi_completed;
  std::uint64_t request = 0;
  static constexpr auto values() { return std::tuple(low(&MpiCompleted::request, 0)); }
};

struct MpiFile {
  static constexpr EventType type = EventType::mpi_file;
  std::uint32_t file = 0;
  std::uint32_t path = 0;      // a name
  std::uint64_t identity = 0;  // equal on all members that opened the file together
  std::uint32_t communicator = 0;
  static constexpr auto values() {
    return std::tuple(low(&MpiFile::file, 0), low(&MpiFile::path, 32), ext_high(&MpiFile::identity, 0),
                      ext_low(&MpiFile::communicator, 0));
  }
};

struct MpiWindow {
  static constexpr EventType type = EventType::mpi_window;
  std::uint32_t window = 0;
  std::uint32_t communicator = 0;
  std::uint64_t identity = 0;
  std::uint64_t bytes = 0;  // of this rank's part
  static constexpr auto values() {
    return std::tuple(low(&MpiWindow::window, 0), low(&MpiWindow::communicator, 32), ext_high(&MpiWindow::identity, 0),
                      ext_low(&MpiWindow::bytes, 0));
  }
};

}  // namespace paceline::format::events
