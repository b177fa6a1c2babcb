// SPDX-License-Identifier: Apache-2.0
// One recorded MPI call: the work of a wrapper before and after the real function.
//
// A wrapper (wrap_c.cpp, wrap_fortran.cpp) knows only how many parameters it has. It passes them on as machine words:
// integers, pointers and handles all travel in registers and stack slots of 8 bytes each (System V x86-64, AArch64).
// The function's row (signatures.h) gives each word its role (arguments.h).
//
// The wrappers stand under MPI's names and under its PMPI names, because other tools may stand before or behind the
// recorder: each wrapper calls the next function of its own name. A tool behind the recorder is called by the wrapper
// of MPI_Send, so it sees what it sees alone. A tool before it (inside the executable, or first in LD_PRELOAD) passes
// the program's call on to PMPI_Send, which is recorded then. callers.h tells such a call from the tool's own ones.
//
// A call inside another is not recorded again. MPI-IO, MPICH's Fortran functions and tools make nested calls.
#pragma once

#include <atomic>

#include "profiler/inject/sources/mpi/arguments.h"

namespace paceline::inject {

// The function that a wrapper passes calls on to: the next one of the wrapper's own name, found at its first call.
struct RealFunction {
  const char* symbol;  // "MPI_Send", "PMPI_Send", "mpi_send_", …
  std::atomic<void*> found{nullptr};
  std::atomic<bool> int_counts{false};  // `found` has int counts, the wrapper large ones
};

// Calls the real function with the words (most_words of them; the unused ones are 0) and records the call. Returns its
// result, which has no meaning for Fortran. Returns an error code if there is no such function.
int call_mpi(RealFunction& real, const MpiRow& row, const Word* words, bool fortran);

// The same for a function under its PMPI name that is called from `site`. A call that a tool makes on its own behalf is
// recorded without arguments and with the mark `by_tool`. A call from inside the MPI library is not recorded.
int call_pmpi(RealFunction& real, const MpiRow& row, const Word* words, bool fortran, const void* site);

// The number of calls of this thread that are being recorded: not 0 in what MPI or a tool calls meanwhile.
extern thread_local constinit int nesting __attribute__((tls_model("initial-exec")));
inline bool is_nested() { return nesting != 0; }

// The function that a nested call goes to without further work, or nullptr. A tool behind the recorder and MPI's
// Fortran functions make one such call of a PMPI function for each call of the program.
inline void* straight_to(const RealFunction& real) {
  if (!is_nested() || real.int_counts.load(std::memory_order_relaxed)) return nullptr;
  return real.found.load(std::memory_order_acquire);
}

}  // namespace paceline::inject
