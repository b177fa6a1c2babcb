// One recorded MPI call: what a wrapper does before and after the real function.
//
// The types of a function's parameters say what they mean (Count, Peer, Root, …), so that the table of functions
// (mpi_wrap.cpp) holds nothing but signatures, and what is recorded follows from them:
//
//   bytes  the first Count (or sum of Counts) × the size of the first Type. For collectives the whole vector that the
//          usual bus-bandwidth formulas take: of gather, scatter, allgather, alltoall and reduce_scatter_block the
//          blocks of all ranks together; of the v-forms what the calling rank knows of it.
//   peer   the first Peer (of a send-and-receive: the destination), with the first Tag
//
// A call inside another (MPI-IO makes some) is not recorded again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/format/mpi_functions.h"
#include "profiler/inject/hang.h"
#include "profiler/inject/mpi_communicators.h"
#include "profiler/inject/mpi_library.h"
#include "profiler/inject/recorder.h"

namespace paceline::inject {

using format::MpiId;
using format::MpiKind;

enum Int : int {};
enum Count : int {};
enum Peer : int {};
enum Tag : int {};
enum Root : int {};
enum Aint : std::ptrdiff_t {};                   // MPI_Aint, MPI_Offset
using Counts = const struct CountArray*;         // int[], one for each peer
using Buf = const struct DataBuffer*;            // may be MPI_IN_PLACE: then the Other… are taken
using OtherCount = const struct OtherCountTag*;  // an int in a register wide enough for a pointer
using OtherType = const struct OtherTypeTag*;    // a Type
using NewComm = struct NewCommTag*;              // MPI_Comm* that is written
using OldComm = struct OldCommTag*;              // MPI_Comm* of what is freed
using Ptr = void*;                               // whatever else: handles, arrays, statuses

struct CallFacts {
  Comm comm = nullptr;
  Type type = nullptr, other_type = nullptr;
  int count = 0, other_count = 0;
  int peer = 0, tag = 0, root = -1;
  const int* counts = nullptr;
  const void* buffer = nullptr;
  bool has_type = false, has_peer = false, has_tag = false;

  void take(Comm value) {
    if (comm == nullptr) comm = value;
  }
  void take(Type value) {
    if (!has_type) type = value;
    has_type = true;
  }
  void take(OtherType value) { other_type = reinterpret_cast<Type>(const_cast<OtherTypeTag*>(value)); }
  void take(OtherCount value) { other_count = static_cast<int>(reinterpret_cast<std::intptr_t>(value)); }
  void take(Count value) { count = value; }
  void take(Root value) { root = value; }
  void take(Counts value) { counts = reinterpret_cast<const int*>(value); }
  void take(Buf value) { buffer = value; }
  void take(Peer value) {
    if (!has_peer) peer = value;
    has_peer = true;
  }
  void take(Tag value) {
    if (!has_tag) tag = value;
    has_tag = true;
  }
  void take(Int) {}
  void take(Aint) {}
  void take(Ptr) {}
  void take(NewComm) {}
  void take(OldComm) {}
};

// Records the begin. False: nothing was recorded, and no end must be.
bool begin_call(MpiId id, MpiKind kind, const CallFacts& facts);

// A call is inside another: it passes through.
extern thread_local constinit int mpi_nesting __attribute__((tls_model("initial-exec")));

inline std::uint64_t function_low(MpiId id) { return static_cast<std::uint64_t>(id); }

// Around the real call. `facts()` is asked only where they are recorded.
template <MpiId id, class Facts, class Real>
int recorded_call(Facts facts, Real real) {
  constexpr MpiKind kind = format::find_mpi_function(static_cast<std::uint32_t>(id))->kind;
  const MpiDepth depth = mpi_depth.load(std::memory_order_relaxed);
  if (depth == MpiDepth::nothing || mpi_nesting != 0) return real();
  ++mpi_nesting;
  bool begun = false;
  if (depth == MpiDepth::full) {
    begun = begin_call(id, kind, facts());
  } else if (recording()) {
    begun = emit(EventType::mpi_begin, function_low(id));
  }
  const int result = real();
  if (begun) emit_mpi_end(function_low(id));
  if constexpr (kind == MpiKind::collective) note_progress();
  --mpi_nesting;
  return result;
}

}  // namespace paceline::inject
