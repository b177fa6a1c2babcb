// Holds fork back while the recorder starts.
//
// A child inherits memory, but only the thread that forked. If another thread is inside NVTX's first call at that
// moment, NVTX's state in the child says "started" for ever, and the child's first NVTX call spins without end. The
// same holds for the start of the recorder itself. So fork waits until a start is complete, and a start waits until a fork
// is; each for 2 s at most. A copy of NVTX that began to start at the very moment of the fork, before the recorder
// could know, is set back in the child.
#pragma once

namespace paceline::inject {

// On the stack of a thread that starts something.
class StartInProgress {
 public:
  StartInProgress();
  ~StartInProgress();
  StartInProgress(const StartInProgress&) = delete;
};

// A thread has read the variable that names NVTX's tool: a copy of NVTX starts, and InitializeInjectionNvtx2 will be
// called soon. `caller` is an address in that copy's code.
void nvtx_start_began(const void* caller);

// In InitializeInjectionNvtx2 and its like. `callbacks` is the table of the copy of NVTX that starts; may be null.
void nvtx_start_arrived(const void* callbacks);

// Before each fork, and after it in the parent.
void wait_for_starts();
void fork_is_over();

// In a forked child: nothing is being started there. What was being started is set back.
void reset_starts_in_child();

}  // namespace paceline::inject
