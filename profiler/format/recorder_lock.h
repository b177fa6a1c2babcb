// SPDX-License-Identifier: Apache-2.0
// Signs that the recorder of a .pace file still runs: a lock on the file, and a modification time that it renews.
//
// The lock is a POSIX record lock (fcntl(2), F_SETLK) on the first byte. A forked child does not inherit it, and it
// ends with its process, however that ends. It also ends when any code of the process closes a descriptor of the same
// file, so the recorder takes it again whenever it renews the modification time. Nobody locks files on network file
// systems, because a lock service that does not answer would block the program.
//
// libc only: used inside the recorded program too.
#pragma once

namespace paceline::format {

// On a local file system the recorder renews the modification time at least this often, in seconds; elsewhere every
// minute. The header says so (`heartbeat_s`).
inline constexpr int heartbeat_s = 5;

// True on file systems of this machine alone, where every process sees locks and modification times at once. False on
// network file systems, and on all that are not known.
bool is_on_local_file_system(int descriptor) noexcept;

// Locks the open file for this process, if it is on a local file system. Two system calls.
void lock_as_recorder(int descriptor) noexcept;

// True if another process, in any PID namespace of this machine, holds the lock. Only for local file systems.
bool is_locked_by_recorder(int descriptor) noexcept;

}  // namespace paceline::format
