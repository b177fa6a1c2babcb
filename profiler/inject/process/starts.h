// SPDX-License-Identifier: Apache-2.0
// Holds fork back while the recorder starts.
//
// A child inherits the memory of its parent, but only the thread that forked. If another thread is in the middle of a
// start, this start would never end in the child. Therefore fork waits until each start is complete, and a start waits
// until each fork is complete, both for at most 2 s.
#pragma once

#include <cstdint>

namespace paceline::inject {

// Lives on the stack of a thread that starts something.
class StartInProgress {
 public:
  StartInProgress();
  ~StartInProgress();
  StartInProgress(const StartInProgress&) = delete;
};

// Before each fork, and after it in the parent.
void wait_for_starts();
void fork_is_over();

// In a forked child: nothing is being started there.
void reset_starts_in_child();

// Sleeps for 20 µs, for loops that wait for another thread. Returns false when 2 s have passed since the first call of
// the loop, which passes 0 in `give_up`.
bool wait_briefly(std::int64_t& give_up);

}  // namespace paceline::inject
