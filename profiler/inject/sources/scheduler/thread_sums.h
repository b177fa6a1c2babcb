// SPDX-License-Identifier: Apache-2.0
// The threads of this process, and what the system counts for each of them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "profiler/inject/system/descriptor.h"
#include "profiler/inject/system/sysfs.h"

namespace paceline::inject {

// Lists the threads of the process. Does not allocate: the folder stays open and is read again.
class ThreadFolder {
 public:
  bool open();
  bool is_open() const { return folder_.number() >= 0; }
  void close() { folder_.close(); }
  // The number of threads now, without the cost of listing them; 0 if it is not known.
  std::uint64_t count() const;
  // Their ids, rising; those beyond the room are left out. Cost: about 0.2 µs a thread.
  std::size_t list(std::span<pid_t> into) const;

 private:
  KeptDescriptor folder_;
};

// What the system counted for a thread since it began.
struct ThreadSums {
  std::uint64_t running_ns = 0;
  std::uint64_t waiting_ns = 0;  // ready to run, without a CPU; counted when the wait ends
  bool operator==(const ThreadSums&) const = default;
};

// Keeps /proc/self/task/THREAD/schedstat open. Returns false as KeptFile::open() does.
bool open_thread_sums(pid_t thread, KeptFile& file);

// Reads that file, or opens it for this time if it is not kept open. The running time in it is brought up to date at
// the kernel's ticks only (1 to 10 ms), so it is taken from the thread's clock where `clock_is_allowed`. Returns false
// if the thread is gone or the kernel does not count. Cost: 1 to 2 µs, and 5 µs where the file is not kept open.
bool read_thread_sums(pid_t thread, KeptFile* file, bool clock_is_allowed, ThreadSums& sums);

// The same of one moment, which `at` gives (absolute ticks): the calling thread may lose its CPU between the clock and
// the sums, which then hold waits that ended after `at`.
bool read_sums_of_a_moment(pid_t thread, KeptFile* file, bool clock_is_allowed, std::uint64_t& at, ThreadSums& sums);

// The running time alone, from the thread's clock. Returns false if the thread is gone. Cost: 0.3 µs.
bool read_running_time(pid_t thread, std::uint64_t& running_ns);

// The system's name of a thread: 15 characters at most, padded with zeros.
void read_thread_name(pid_t thread, char (&name)[16]);

}  // namespace paceline::inject
