/* How other libraries of the recorder put events into the trace: a table of C functions that libpaceline-inject.so
 * exports under the name paceline_event_sink_v1.
 *
 * libpaceline-cupti.so (loaded by the CUDA driver) and libpaceline-nccl.so (loaded by NCCL) come into the process long
 * after the recorder, may be unloaded before it ends, and share no object code with it: they find the table
 * (find_event_sink.h) and link to nothing. The table and what it points to stay for the life of the process.
 *
 * All functions may be called from any thread, but not from signal handlers, and never throw. Event types, the meaning
 * of the words and ticks are those of profiler/format/event.h.
 */
#ifndef PACELINE_EVENT_SINK_H
#define PACELINE_EVENT_SINK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct paceline_event_sink_v1 {
  /* sizeof this struct, as the recorder knows it. Later versions only append: a caller looks whether what it needs is
   * within. */
  size_t size;

  /* Opens the trace file if no event source has yet, which takes some 10 ms. 1: there is a file; 0: this process is not
   * recorded (the reason was said in a line), and nothing below does anything. */
  int (*open)(void);

  /* 1 while events are recorded, 0 while that is switched off or over. Costs one load. */
  int (*recording)(void);

  /* The recorder's clock: absolute ticks, now; 10 to 30 ns. And ticks in a second, nominal: right to some parts in a
   * million, for differences of a few seconds at most. */
  uint64_t (*ticks)(void);
  double (*ticks_per_second)(void);

  /* The number of a text, from 1, the same for equal texts; 0 for the empty one. A known text takes no lock; a new one
   * is recorded. The bytes are copied. */
  uint32_t (*intern)(const char* text, size_t length);

  /* Writes an event on the calling thread's track: the head's ticks (absolute; earlier than the recording's begin is
   * taken for its begin) and `low`, then 2 × `slots` further words, ext.high, ext.low, ext2.high, …; `slots` must be
   * what the type has. No lock, no allocation, no system call but for a rare wake-up. 1: written; 0: no room, counted
   * as dropped. */
  int (*emit)(uint64_t at_ticks, uint32_t type, uint64_t low, const uint64_t* words, uint32_t slots);

  /* The same for definitions, which others refer to: waits up to a second for room, and is written, with the time of
   * the call, even while recording is switched off. */
  int (*define)(uint32_t type, uint64_t low, const uint64_t* words, uint32_t slots);

  /* Counts events that were lost before they came here. `cause`: format::DropCause. */
  void (*dropped)(uint32_t cause, uint64_t events);

  /* Says one line, "paceline: TEXT", on standard error, without stdio. */
  void (*say)(const char* text);
};

#ifdef __cplusplus
}
#endif

#endif
