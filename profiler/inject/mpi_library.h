// The MPI library of the program, found at run time: this recorder links none, so that it suits programs of any MPI
// and of no MPI.
//
// Handles are passed on as pointers, which is what Open MPI's are. MPICH's are ints: they travel in the same registers
// unharmed, but nothing is known of them, so that for other libraries than Open MPI only the times of calls are
// recorded.
#pragma once

#include <atomic>
#include <cstdint>

namespace paceline::inject {

using Comm = struct OpaqueComm*;
using Type = struct OpaqueType*;
using Group = struct OpaqueGroup*;

enum class MpiDepth : int {
  nothing,  // no recording (yet): calls pass through
  times,    // begin and end of calls
  full,     // and bytes, peers, communicators: Open MPI
};
extern std::atomic<MpiDepth> mpi_depth;

// "PMPI_X" of the program's library; nullptr where there is none. Slow: callers keep the result.
void* find_in_mpi(const char* symbol);

// Functions and objects that the recorder uses for itself. Set by open_mpi_library() if the library is Open MPI.
struct MpiLibrary {
  int (*comm_size)(Comm, int*) = nullptr;
  int (*comm_remote_size)(Comm, int*) = nullptr;
  int (*comm_rank)(Comm, int*) = nullptr;
  int (*comm_test_inter)(Comm, int*) = nullptr;
  int (*comm_group)(Comm, Group*) = nullptr;
  int (*comm_get_name)(Comm, char*, int*) = nullptr;
  int (*group_size)(Group, int*) = nullptr;
  int (*group_translate_ranks)(Group, int, const int*, Group, int*) = nullptr;
  int (*group_free)(Group*) = nullptr;
  int (*type_size)(Type, int*) = nullptr;
  Comm (*comm_f2c)(int) = nullptr;
  Type (*type_f2c)(int) = nullptr;
  Comm world = nullptr, self = nullptr, null_comm = nullptr;
  Type null_type = nullptr;
  const void* fortran_in_place = nullptr;  // nullptr where no Fortran is used
};
extern MpiLibrary mpi;

inline const void* const in_place = reinterpret_cast<const void*>(1);

// Looks at which library it is, before MPI_Init. Returns the depth to record at, and the library's own description in
// `version`.
MpiDepth open_mpi_library(char* version, std::size_t capacity);

}  // namespace paceline::inject
