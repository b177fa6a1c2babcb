// Ends that run no destructor: _exit, _Exit and quick_exit, and exec, which replaces the program.
//
// All of them may be called in a signal handler, or in a child of vfork, which shares its parent's memory. So nothing
// here allocates or takes a lock; a vfork child is told apart by its process id; and the drain thread does the work
// while the caller waits for a limited time.
#pragma once

namespace paceline::inject {

// Before the process ends without its destructors. The drain closes the file; where it does not in time (10 s), the
// file is closed as it is, without the memory that was not used.
void end_at_once();

// Before exec. The file is complete as it is: nothing is written into it any more, and the memory that is not used is
// given back to the disk. True if that was done here, and has to be undone where exec fails.
bool pause_for_exec();
void go_on_after_exec();

}  // namespace paceline::inject
