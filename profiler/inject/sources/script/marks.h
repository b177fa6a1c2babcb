// SPDX-License-Identifier: Apache-2.0
/* The functions that a script's own marks call through ctypes (profiler/pytorch/paceline_pytorch/script.py), with the
 * interpreter's lock. libpaceline-inject.so exports them. A call costs about as much as an NVTX range. */
#ifndef PACELINE_SCRIPT_MARKS_H
#define PACELINE_SCRIPT_MARKS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns 1 while events of this process are recorded, or will be from its first event on. Opens no file. */
int paceline_script_active_v1(void);

/* The number of a range with this name, which is copied and must not be null. Opens the trace file of this process at
 * the first call. Returns 0 if the process is not recorded. A number stays valid, also in a forked child. */
uint64_t paceline_script_range_v1(const char* name);

/* A range of the calling thread, and its end. */
void paceline_script_begin_v1(uint64_t range);
void paceline_script_end_v1(void);

/* An iteration of the calling thread, and its end. From the first one on, the hooks for PyTorch make none. */
void paceline_script_begin_step_v1(void);
void paceline_script_end_step_v1(void);

#ifdef __cplusplus
}
#endif

#endif
