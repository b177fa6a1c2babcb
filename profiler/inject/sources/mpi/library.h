// SPDX-License-Identifier: Apache-2.0
// The MPI library of the program, found at run time. The recorder links no MPI, so that it works in programs with any
// MPI and with none.
//
// Two binary interfaces are known: that of Open MPI (4, 5 and its derivatives), whose handles are pointers, and that of
// MPICH (with Intel MPI, Cray MPICH, MVAPICH: the MPICH ABI Compatibility Initiative), whose handles are ints. Handles
// are kept as words here. An int that is passed in a register or on the stack leaves the upper half of its word
// undefined, so a handle is cut to its width before it is compared. For other libraries only the times of calls are
// recorded.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace paceline::inject {

using Word = std::uintptr_t;  // a parameter of an MPI function as a machine word
using Handle = Word;          // an MPI handle, cut to its width

enum class MpiDepth : int {
  nothing,  // calls pass through without recording
  times,    // begin and end of calls
  full,     // also bytes, peers and communicators: the ABI is known
};
extern std::atomic<MpiDepth> mpi_depth;

// Finds a symbol such as PMPI_Send behind the recorder: in another tool or in the program's library. Returns nullptr if
// there is none. Slow: callers keep the
// result.
void* find_in_mpi(const char* symbol);

// The function `symbol` of a tool that stands behind the recorder and before the MPI library, whose own function of
// that name is also called `pmpi_symbol`. Returns nullptr if there is none. Slow.
void* find_in_tool(const char* symbol, const char* pmpi_symbol);

// The library's functions, and the values that mpi.h of its ABI defines. Set by open_mpi_library().
struct MpiLibrary {
  int (*comm_size)(Handle, int*) = nullptr;
  int (*comm_remote_size)(Handle, int*) = nullptr;
  int (*comm_rank)(Handle, int*) = nullptr;
  int (*comm_test_inter)(Handle, int*) = nullptr;
  int (*comm_group)(Handle, Handle*) = nullptr;
  int (*comm_remote_group)(Handle, Handle*) = nullptr;
  int (*comm_get_name)(Handle, char*, int*) = nullptr;
  int (*group_size)(Handle, int*) = nullptr;
  int (*group_translate_ranks)(Handle, int, const int*, Handle, int*) = nullptr;
  int (*group_free)(Handle*) = nullptr;
  int (*type_size)(Handle, int*) = nullptr;
  int (*topo_test)(Handle, int*) = nullptr;
  int (*cartdim_get)(Handle, int*) = nullptr;
  int (*graph_neighbors_count)(Handle, int, int*) = nullptr;
  int (*dist_graph_neighbors_count)(Handle, int*, int*, int*) = nullptr;
  Handle (*comm_f2c)(int) = nullptr;  // nullptr: Fortran's handles are C's
  Handle (*type_f2c)(int) = nullptr;
  int (*request_c2f)(Handle) = nullptr;  // may be missing

  bool int_handles = false;  // MPICH; files are pointers in both ABIs
  Handle world = 0, self = 0, null_comm = 0, null_type = 0, null_request = 0;
  Handle complete_request = 0;  // the request of operations that are complete at once; 0: unknown
  const void* c_in_place = nullptr;
  const void* const* fortran_in_place = nullptr;  // where the address is stored; nullptr in programs without Fortran
  int any_source = 0, proc_null = 0, root = 0, cartesian = 0, graph = 0, dist_graph = 0;

  Handle handle(Word word) const { return int_handles ? word & 0xffffffff : word; }
  // The handle in a variable of a C program.
  Handle load(const void* place) const {
    return int_handles ? Handle{*static_cast<const std::uint32_t*>(place)} : *static_cast<const Handle*>(place);
  }
  Handle comm_of_fortran(int value) const { return comm_f2c ? comm_f2c(value) : static_cast<std::uint32_t>(value); }
  Handle type_of_fortran(int value) const { return type_f2c ? type_f2c(value) : static_cast<std::uint32_t>(value); }
  // A key for the recorder's own tables, different from each C handle unless it is the same in C and Fortran.
  Handle key_of_fortran(int value, bool file = false) const {
    const Handle wide = static_cast<std::uint32_t>(value);
    return int_handles && !file ? wide : wide | Handle{1} << 63;
  }
  // A query of MPI with an invalid handle would end the program.
  bool is_type(Handle type) const;
  bool is_comm(Handle comm) const;
};
extern MpiLibrary mpi;

// Identifies the library before MPI_Init. Returns the depth to record at, and writes the library's own description to
// `version`.
MpiDepth open_mpi_library(char* version, std::size_t capacity);

}  // namespace paceline::inject
