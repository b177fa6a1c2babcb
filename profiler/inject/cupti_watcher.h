// SPDX-License-Identifier: Apache-2.0
/* Who is told of the program's own calls of CUPTI: libpaceline-cupti.so, through the recorder's table (event_sink.h).
 */
#ifndef PACELINE_CUPTI_WATCHER_H
#define PACELINE_CUPTI_WATCHER_H

#include <stdint.h>

/* The program's own calls of CUPTI, such as those of PyTorch's profiler, which pass through libpaceline-inject.so. */
enum paceline_cupti_call {
  paceline_cupti_subscribe,
  paceline_cupti_register_callbacks, /* cuptiActivityRegisterCallbacks */
  paceline_cupti_enable,             /* cuptiActivityEnable; the argument is the kind */
  paceline_cupti_disable,            /* cuptiActivityDisable, likewise */
  paceline_cupti_flush,              /* cuptiActivityFlushAll; the argument is the flag */
  paceline_cupti_finalize,
};

/* What is told of them: before the call, and after it with its argument and 1 if it succeeded. On the program's thread.
 */
struct paceline_cupti_watcher {
  void (*before)(enum paceline_cupti_call call);
  void (*after)(enum paceline_cupti_call call, uint32_t argument, int succeeded);
};

#endif
