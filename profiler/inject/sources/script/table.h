// SPDX-License-Identifier: Apache-2.0
/* How a script's package puts ranges into the trace: a table of C functions that libpaceline-inject.so exports under
 * the name paceline_script_ranges_v1.
 *
 * profiler/pytorch/ calls it through Python's ctypes, so that it needs neither a compiler nor the module nvtx. The
 * events are NVTX ranges and marks of the domain "torch", and they obey the recorder's options for NVTX.
 *
 * A call is cheap: the names of a range are given once, and each range is then one number. All functions may be called
 * from any thread, and also in a forked child, where the numbers stay valid.
 */
#ifndef PACELINE_SCRIPT_TABLE_H
#define PACELINE_SCRIPT_TABLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#include <cstdint>

extern "C" {
#endif

/* A function for Python, with the layout of Python's PyMethodDef. */
struct paceline_python_function {
  const char* name; /* null: the end of the list */
  void* function;
  int flags;
  const char* text;
};

/* What the functions need of Python. */
struct paceline_python {
  void* truth;                                                 /* True */
  void (*add_reference)(void* object);                         /* Py_IncRef */
  void* (*call)(void* function, void* arguments, void* named); /* PyObject_Call */
  void* (*item)(void* tuple, ptrdiff_t index);                 /* PyTuple_GetItem */
};

struct paceline_script_ranges_v1 {
  /* sizeof this struct in the recorder. Later versions only append members. */
  size_t size;

  /* The number of a name and a category; both are copied. Equal ones have equal numbers. Returns 0 without a file,
   * which the Python function attach() opens. */
  uint64_t (*kind)(const char* name, const char* category);

  /* A range of the calling thread, and its end. */
  void (*push)(uint64_t kind);
  void (*pop)(void);

  void (*mark)(uint64_t kind);
  void (*mark_value)(uint64_t kind, double value);

  /* A collective of a communicator. `communicator` is the number of a kind whose name is the communicator's. `request`
   * is 0 if the thread waits inside the range, and otherwise a number of the process that push_wait() repeats.
   * start_collective() begins a range that any thread may end. */
  void (*push_collective)(uint64_t kind, uint64_t communicator, uint64_t bytes, uint64_t sequence, uint64_t members);
  uint64_t (*start_collective)(uint64_t kind, uint64_t communicator, uint64_t bytes, uint64_t sequence,
                               uint64_t members, uint64_t request);

  /* A message to or from a rank of a communicator, with the same meaning. */
  uint64_t (*start_message)(uint64_t kind, uint64_t communicator, uint64_t bytes, int64_t peer, int64_t tag,
                            uint64_t request);

  /* Ends a range of start_collective() or start_message(). */
  void (*end)(uint64_t range);

  /* The calling thread waits for the requests from `first` to `last`; pop() ends it. */
  void (*push_wait)(uint64_t first, uint64_t last);

  /* Writes one line, "paceline: TEXT", to standard error. */
  void (*say)(const char* text);

  /* The functions for Python (python_functions.cpp), which a script makes with PyCFunction_NewEx(). A call takes a
   * quarter of the time that a call through ctypes takes. */
  const struct paceline_python_function* (*for_python)(const struct paceline_python* python);

  /* The numbers of backwards, and of batches for training, that have begun. */
  uint64_t (*count_backwards)(void);
  uint64_t (*count_batches)(void);

  /* torch.distributed gave this process a rank. */
  void (*note_rank)(int32_t rank, int32_t ranks);
};

#ifdef __cplusplus
}

namespace paceline::inject {

// Defined in python_functions.cpp.
const paceline_python_function* functions_for_python(const paceline_python* functions_of_python);
// True if hooks asked for them.
bool has_python_hooks();

}  // namespace paceline::inject
#endif

#endif
