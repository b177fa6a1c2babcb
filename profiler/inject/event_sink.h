// SPDX-License-Identifier: Apache-2.0
/* How other libraries of the recorder put events into the trace: a table of C functions that libpaceline-inject.so
 * exports under the name paceline_event_sink_v1.
 *
 * libpaceline-cupti.so (loaded by the CUDA driver) and libpaceline-nccl.so (loaded by NCCL) come into the process long
 * after the recorder, may be unloaded before it ends, and share no object code with it. They find the table
 * (find_event_sink.h) and link nothing. The table and its functions stay for the life of the process.
 *
 * All functions may be called from any thread, but not from signal handlers, and never throw. Event types, the meaning
 * of the words and ticks are those of profiler/format/event.h.
 */
#ifndef PACELINE_EVENT_SINK_H
#define PACELINE_EVENT_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "profiler/inject/cupti_watcher.h"

#ifdef __cplusplus
extern "C" {
#endif

struct paceline_event_sink_v1 {
  /* sizeof this struct in the recorder. Later versions only append members, so a caller checks that the members it
   * needs are within this size. */
  size_t size;

  /* Opens the trace file if no event source has opened it yet, which takes some 10 ms. Returns 1 if there is a file,
   * and 0 if this process is not recorded: one line has reported the reason, and the functions below do nothing. */
  int (*open)(void);

  /* 1 while events are recorded, 0 while recording is paused or has ended. Cost: one load. */
  int (*recording)(void);

  /* The recorder's clock: absolute ticks now (cost: 10 to 30 ns), and the nominal number of ticks per second, which is
   * accurate to some parts per million and serves for differences of a few seconds at most. */
  uint64_t (*ticks)(void);
  double (*ticks_per_second)(void);

  /* The number of a text, from 1; equal texts have the same number, and the empty text has 0. A known text takes no
   * lock; a new text is recorded. The bytes are copied. */
  uint32_t (*intern)(const char* text, size_t length);

  /* Writes an event on the calling thread's track: the ticks (absolute; a time before the recording began counts as its
   * begin) and `low`, then 2 × `slots` further words, ext.high, ext.low, ext2.high, …; `slots` must be the number that
   * the type has. No lock, no allocation, and no system call except for a rare wake-up. Returns 1 if the event was
   * written, and 0 if there was no room: then it is counted as dropped. */
  int (*emit)(uint64_t at_ticks, uint32_t type, uint64_t low, const uint64_t* words, uint32_t slots);

  /* The same for definitions, which other events refer to. It waits up to 1 s for room, and writes with the time of the
   * call, even while recording is paused. */
  int (*define)(uint32_t type, uint64_t low, const uint64_t* words, uint32_t slots);

  /* Counts events that were lost before they reached the recorder. `cause`: format::DropCause. */
  void (*dropped)(uint32_t cause, uint64_t events);

  /* Writes one line, "paceline: TEXT", to standard error without stdio. */
  void (*say)(const char* text);

  /* Has `function` called once before the recording of this process ends, while events are still accepted, also when
   * the process ends by _exit or quick_exit, which run no exit handlers. It may run on a thread of the recorder, and
   * the end of the process waits for it: it must return within seconds. Returns 0 if there are too many such functions.
   */
  int (*at_close)(void (*function)(void));

  /* From now on tells the watcher, which stays for the life of the process, of the program's own calls of CUPTI. Only
   * calls of a library that is linked with CUPTI are seen, and only if the recorder is preloaded. */
  void (*watch_cupti)(const struct paceline_cupti_watcher* watcher);
};

#ifdef __cplusplus
}
#endif

#endif
