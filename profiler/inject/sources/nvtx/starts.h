// Holds fork back while the recorder starts.
//
// A child inherits memory, but only the thread that forked. If another thread is inside NVTX's first call at that
// moment, NVTX's state in the child says "started" for ever, and the child's first NVTX call spins without end. The
// same holds for the start of the recorder itself. So fork waits until a start of the recorder is complete, and a start
// waits until a fork is; each for 2 s at most. A thread may enter NVTX's first call at any moment, also while the
// system copies the memory. Therefore each fork first looks for the copies of NVTX in the loaded libraries, and the
// child sets back those whose state is "started".
#pragma once

namespace paceline::inject {

// On the stack of a thread that starts something.
class StartInProgress {
 public:
  StartInProgress();
  ~StartInProgress();
  StartInProgress(const StartInProgress&) = delete;
};

// Before each fork, and after it in the parent.
void wait_for_starts();
void fork_is_over();

// In a forked child: nothing is being started there. What was being started is set back.
void reset_starts_in_child();

}  // namespace paceline::inject
