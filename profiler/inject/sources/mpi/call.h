// One recorded MPI call: what a wrapper does before and after the real function.
//
// A wrapper (mpi_wrap_c.cpp, mpi_wrap_fortran.cpp) knows only how many parameters it has. It passes them on as words,
// which is what they are to the machine: integers, pointers and handles all travel in registers and places of the stack
// of 8 bytes each (System V x86-64, AArch64). What they mean says the function's row (mpi_signatures.h).
//
//   bytes  count × size of the type. For collectives the whole vector that the usual bus-bandwidth formulas take: of
//          gather, scatter, allgather, alltoall and reduce_scatter_block the blocks of all ranks together; of the
//          v-forms what the calling rank knows of it.
//   peer   of a send-and-receive: the destination
//
// A call inside another (MPI-IO makes some, MPICH's Fortran functions do) is not recorded again.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "profiler/format/mpi_functions.h"
#include "profiler/inject/core/writer.h"
#include "profiler/inject/sources/mpi/library.h"

namespace paceline::inject {

using format::MpiId;
using format::MpiKind;

inline constexpr int most_words = 16;  // parameters, Fortran's error code and two lengths of texts

// A function and where its parameters are, by the letters of mpi_signatures.h.
struct MpiRow {
  MpiId id = MpiId::Init;
  MpiKind kind = MpiKind::management;
  std::int8_t parameters = 0;
  bool large = false;                         // counts are MPI_Count, not int
  std::int8_t positions['z' - 'A' + 1] = {};  // -1: it has none

  constexpr MpiRow(MpiId function, std::string_view letters, bool large_counts = false)
      : id(function),
        kind(format::find_mpi_function(static_cast<std::uint32_t>(function))->kind),
        parameters(static_cast<std::int8_t>(letters.size())),
        large(large_counts) {
    for (std::int8_t& position : positions) position = -1;
    for (std::size_t at = 0; at < letters.size(); ++at) {
      if (letters[at] != '.') positions[letters[at] - 'A'] = static_cast<std::int8_t>(at);
    }
  }
  constexpr int position(char letter) const { return positions[letter - 'A']; }
};

// The parameters of one call.
struct Arguments {
  const MpiRow& row;
  const Word* words;
  bool fortran;  // all are addresses

  bool has(char letter) const { return row.position(letter) >= 0; }
  Word word(char letter) const { return words[row.position(letter)]; }
  template <class Value>
  Value* pointer(char letter) const {
    return reinterpret_cast<Value*>(word(letter));
  }

  int integer(char letter) const { return fortran ? *pointer<const int>(letter) : static_cast<int>(word(letter)); }
  std::int64_t wide(char letter) const {
    return fortran ? *pointer<const std::int64_t>(letter) : static_cast<std::int64_t>(word(letter));
  }
  std::int64_t count(char letter) const { return row.large ? wide(letter) : integer(letter); }
  std::int64_t count_in(char letter, std::uint32_t index) const {  // of counts[]
    return row.large ? pointer<const std::int64_t>(letter)[index] : pointer<const int>(letter)[index];
  }
  Handle comm(char letter) const {
    return fortran ? mpi.comm_of_fortran(*pointer<const int>(letter)) : mpi.handle(word(letter));
  }
  Handle comm_in(char letter) const {  // MPI_Comm*
    return fortran ? mpi.comm_of_fortran(*pointer<const int>(letter)) : mpi.load(pointer<const void>(letter));
  }
  Handle type(char letter) const {
    return fortran ? mpi.type_of_fortran(*pointer<const int>(letter)) : mpi.handle(word(letter));
  }
  Handle type_in(char letter, std::uint32_t index) const;  // MPI_Datatype[]
  bool is_in_place(char letter) const {
    if (fortran) return mpi.fortran_in_place != nullptr && pointer<const void>(letter) == *mpi.fortran_in_place;
    return pointer<const void>(letter) == mpi.c_in_place;
  }
  // Requests, windows and files under the names that the recorder's own tables have for them.
  Handle key(char letter, bool file = false) const;
  Handle key_in(char letter, int index = 0, bool file = false) const;
  std::string_view text(char letter) const;

  bool succeeded(int result) const {
    if (!fortran) return result == 0;
    const auto* error = reinterpret_cast<const int*>(words[row.parameters]);  // optional in mpi_f08
    return error == nullptr || *error == 0;
  }
};

// What was told at a call's begin. A persistent request's Start tells it again.
struct Began {
  bool recorded = false;
  EventType type = EventType::mpi_begin;
  std::uint64_t low = 0;
  Slot extension;
};

inline bool emit_begin(const Began& told) {
  return told.type == EventType::mpi_begin ? emit(told.type, told.low) : emit(told.type, told.low, told.extension);
}

// The real function behind a wrapper, found at its first call.
struct RealFunction {
  const char* symbol;
  std::atomic<void*> found{nullptr};
  std::atomic<bool> int_counts{false};  // `found` is the form with int counts of a function with large ones
};

inline std::uint64_t function_low(MpiId id) { return static_cast<std::uint64_t>(id); }

// Calls the real function with the words (most_words of them, the unused ones 0) and records it; returns its result
// (of Fortran's functions nothing). An error code where there is no such function.
int call_mpi(RealFunction& real, const MpiRow& row, const Word* words, bool fortran);

}  // namespace paceline::inject
