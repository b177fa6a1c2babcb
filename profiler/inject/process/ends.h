// SPDX-License-Identifier: Apache-2.0
// Ends of a process that run no destructors: _exit, _Exit and quick_exit, and exec, which replaces the program.
//
// All of them may be called in a signal handler, or in a child of vfork, which shares its parent's memory. So this code
// does not allocate and takes no lock, and it recognises a vfork child by its process id. The drain thread does the
// work while the caller waits for a limited time.
#pragma once

namespace paceline::inject {

// Remembers the status with which this process ends. A child of vfork leaves its parent's status alone.
void note_exit_status(int status);
int exit_status();

// Called before the process ends without its destructors. The drain closes the file. If it does not finish within 10 s,
// the file is closed as it is, and its unused space is given back.
void end_at_once();

// Called before exec. Completes the file: no further event is written into it, and its unused disk space is freed.
// Returns true if this was done. If exec then fails, resume_after_failed_exec() must undo it.
bool pause_for_exec();
void resume_after_failed_exec();

}  // namespace paceline::inject
