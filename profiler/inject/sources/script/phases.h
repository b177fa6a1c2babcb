// SPDX-License-Identifier: Apache-2.0
// The phases of a training script: which range a call of the script makes, and where an iteration begins and ends.
//
// The hooks for Python (profiler/pytorch/) call these functions around the calls of the script. They are written in
// C++, because a hook runs once in a step, after the step's computation has filled the caches: most of its cost comes
// from cache misses, and Python's code, objects and dictionaries take much memory.
//
// An iteration has one step of each optimizer. It begins with the first work for training after the step of the
// iteration before. What a script does after the step, such as reading the loss, therefore belongs to the step's
// iteration. Where a script has no optimizer, a backward takes the place of the step, and the next batch begins another
// iteration. An evaluation or a checkpoint after the step ends it too. Only the thread that does the first work for
// training has iterations, and they begin and end outside all other ranges of the hooks, because ranges of a thread
// nest. Fetching a batch is such work on the main thread only: another one may fetch for the thread that trains. A
// script that marks its steps itself has no other iterations from its first step on.
//
// The interpreter's lock protects this state, as all callers hold it.
#pragma once

#include <cstdint>

namespace paceline::inject {

enum class Phase : std::uint8_t {
  preprocess,
  fetch,
  collate,
  forward,
  recompute,
  backward,
  optimizer,
  zero_grad,
  evaluate,
  checkpoint,
  copy,
  startup,
  wait,
  iteration,
  count,
};

// What the hooks know of a thread.
struct ScriptThread {
  std::uint32_t depth = 0;      // open ranges of the hooks, without the iteration
  std::uint32_t inside = 0;     // open forwards and fetches: modules that the thread calls are a part of them
  std::uint64_t fetching = 0;   // for each open fetch one bit, the innermost lowest: its items are still being read
  std::uint32_t own_steps = 0;  // open steps that the script marks itself
  bool runs_backward = false;
};
extern thread_local constinit ScriptThread script_thread __attribute__((tls_model("initial-exec")));

// Opens the trace file of this process at its first event. Returns false if the process is not recorded.
[[gnu::hot]] bool attach_script();

// The kind of a phase's ranges (ranges.h). 0 before attach_script().
std::uint64_t kind_of_phase(Phase phase);

// A range of the calling thread.
[[gnu::hot]] void enter(Phase phase);
[[gnu::hot]] void leave();

// True if a module that the calling thread calls is a part of an open range.
inline bool is_inside() { return script_thread.inside != 0; }

// A batch is fetched. `for_training`: it is not for an evaluation, and the loader has one.
[[gnu::hot]] void begin_batch(bool for_training);
// A batch for training is fetched from a loader that does not know whether it has one. Its iteration begins with
// found_batch(), because the end of the loader would begin one otherwise. end_inside() ends a fetch without a batch.
void seek_batch();
void found_batch();
// The outermost module is called. Returns true once in a process: the caller then describes the module.
[[gnu::hot]] bool begin_forward(bool with_gradients);
// Ends either of them.
[[gnu::hot]] void end_inside();

// Returns false if no range begins, because the thread runs a backward already or the process is not recorded.
[[gnu::hot]] bool begin_backward();
[[gnu::hot]] void end_backward();
// The numbers of batches for training and of backwards that have begun.
std::uint64_t count_batches();
std::uint64_t count_backwards();

// Each returns false if no range begins. leave() ends it.
[[gnu::hot]] bool begin_zero_grad();
bool begin_clipping();  // of gradients
bool begin_copy();

// Reading the items of a batch, and joining them, which ends with the fetch.
[[gnu::hot]] void begin_fetch();
[[gnu::hot]] void begin_collate();
[[gnu::hot]] void end_fetch();

// Work for training begins.
void begin_work();
void begin_work_on_batch();
// An evaluation or a checkpoint begins, or a loader has no more batches.
void begin_interlude();
// The script calls Module.eval(). The second function returns true until the next forward for training.
void note_evaluation();
bool is_evaluating();

// --- steps of optimizers. While a script has one optimizer, which set_only_optimizer() names, begin_only_step() and
// end_step() do everything. The callers decide about several optimizers
// (profiler/pytorch/paceline_pytorch/iterations.py).

// Returns false if this is not the only optimizer, or if it is called inside a step.
[[gnu::hot]] bool begin_only_step(const void* optimizer);
void begin_step();
// Returns true if the step is one of the open iteration.
[[gnu::hot]] bool end_step();
bool is_in_step();
// True if an optimizer has stepped in the open iteration.
bool has_stepped();
// True if an iteration may end and begin here: on its thread, outside other ranges.
bool is_outside();
void begin_next_iteration();
// The optimizers that stepped are all that step in an iteration, so the next work begins another one.
void set_finished(bool finished);
// Null: none.
void set_only_optimizer(const void* optimizer);

// A step that the script marks itself is an iteration. Steps inside it and those of other threads count as parts of it.
void begin_own_step();
void end_own_step();

// The script has an optimizer.
void note_optimizer();

// In a forked child.
void reset_script_phases();

}  // namespace paceline::inject
