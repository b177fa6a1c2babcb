// SPDX-License-Identifier: Apache-2.0
// The arguments of an MPI call: machine words, to which the function's row (signatures.h) gives their roles. Of some of
// them an event is made:
//
//   bytes  count × size of the type. For collectives it is the whole vector, as the usual bus-bandwidth formulas take
//          it: for gather, scatter, allgather, alltoall and reduce_scatter_block the blocks of all ranks together; for
//          the v-forms the part that the calling rank knows.
//   peer   the destination, for a call that sends and receives
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "profiler/format/mpi_functions.h"
#include "profiler/inject/buffer/emit_event.h"
#include "profiler/inject/sources/mpi/library.h"
#include "profiler/inject/sources/mpi/roles.h"

namespace paceline::inject {

using format::MpiId;
using format::MpiKind;

inline constexpr int most_words = 16;  // parameters, Fortran's error code and the lengths of two texts

// A function and where its parameters are.
struct MpiRow {
  MpiId id = MpiId::Init;
  MpiKind kind = MpiKind::management;
  std::int8_t parameters = 0;
  bool large = false;  // counts are MPI_Count, not int
  // Where the parameter of each role is; -1: the function has none.
  std::array<std::int8_t, mpi_roles> positions{};

  constexpr MpiRow(MpiId function, std::initializer_list<MpiRole> roles, bool large_counts = false)
      : id(function),
        kind(format::find_mpi_function(static_cast<std::uint32_t>(function))->kind),
        parameters(static_cast<std::int8_t>(roles.size())),
        large(large_counts) {
    positions.fill(-1);
    std::int8_t at = 0;
    for (const MpiRole role : roles) {
      if (role != MpiRole::_) positions[static_cast<std::size_t>(role)] = at;
      ++at;
    }
  }
  constexpr int position(MpiRole role) const { return positions[static_cast<std::size_t>(role)]; }
  constexpr bool has(MpiRole role) const { return position(role) >= 0; }
};

// The parameters of one call. A parameter that the function does not have reads as 0, null or the value that the caller
// gives.
struct Arguments {
  const MpiRow& row;
  const Word* words;
  bool fortran;  // all are addresses

  bool has(MpiRole role) const { return row.has(role); }
  Word word(MpiRole role) const { return has(role) ? words[row.position(role)] : 0; }
  template <class Value>
  Value* pointer(MpiRole role) const {
    return reinterpret_cast<Value*>(word(role));
  }

  int integer(MpiRole role, int otherwise = 0) const {
    if (!has(role)) return otherwise;
    return fortran ? *pointer<const int>(role) : static_cast<int>(word(role));
  }
  std::int64_t wide(MpiRole role, std::int64_t otherwise = 0) const {
    if (!has(role)) return otherwise;
    return fortran ? *pointer<const std::int64_t>(role) : static_cast<std::int64_t>(word(role));
  }
  std::int64_t count(MpiRole role) const { return row.large ? wide(role) : integer(role); }
  // One of counts[], which the function must have.
  std::int64_t count_in(MpiRole role, std::uint32_t index) const {
    return row.large ? pointer<const std::int64_t>(role)[index] : pointer<const int>(role)[index];
  }
  Handle comm(MpiRole role) const { return fortran ? mpi.comm_of_fortran(integer(role)) : mpi.handle(word(role)); }
  Handle comm_in(MpiRole role) const;  // MPI_Comm*
  Handle type(MpiRole role) const { return fortran ? mpi.type_of_fortran(integer(role)) : mpi.handle(word(role)); }
  // One of MPI_Datatype[], which the function must have.
  Handle type_in(MpiRole role, std::uint32_t index) const;
  bool is_in_place(MpiRole role) const {
    if (fortran) return mpi.fortran_in_place != nullptr && pointer<const void>(role) == *mpi.fortran_in_place;
    return pointer<const void>(role) == mpi.c_in_place;
  }
  // Requests, windows and files under the names that the recorder's own tables have for them. key_in(): from a pointer
  // or an array, which the function must have.
  Handle key(MpiRole role, bool file = false) const;
  Handle key_in(MpiRole role, int index = 0, bool file = false) const;
  std::string_view text(MpiRole role) const;

  bool succeeded(int result) const {
    if (!fortran) return result == 0;
    const auto* error = reinterpret_cast<const int*>(words[row.parameters]);  // optional in mpi_f08
    return error == nullptr || *error == 0;
  }
};

// The arguments captured when the call began. MPI_Start reports it again for a persistent request.
struct Began {
  bool recorded = false;
  EventType type = EventType::mpi_begin;
  std::uint64_t low = 0;
  Slot extension;

  template <class Event>
  void set(const Event& event) {
    type = Event::type;
    const auto slots = format::pack(0, event);
    low = slots[0].low;
    if constexpr (slots.size() > 1) extension = slots[1];
  }
};

inline bool emit_begin(const Began& begun) {
  return begun.type == EventType::mpi_begin ? emit(begun.type, begun.low)
                                            : emit(begun.type, begun.low, begun.extension);
}

inline std::uint64_t function_low(MpiId id) { return static_cast<std::uint64_t>(id); }

}  // namespace paceline::inject
