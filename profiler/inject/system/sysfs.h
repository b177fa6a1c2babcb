// SPDX-License-Identifier: Apache-2.0
// Small files of /proc and /sys.
#pragma once

#include <dirent.h>
#include <fcntl.h>

#include <cstddef>
#include <cstdint>

#include "profiler/inject/system/descriptor.h"

namespace paceline::inject {

// Reads a file's text from its beginning and cuts line ends off its end. Returns the length; 0 and "" if the file
// cannot be read. The text ends with a zero byte; text beyond `capacity` - 1 bytes is cut.
std::size_t read_file(const char* path, char* out, std::size_t capacity);

// The same for a thread that reads files while the program runs: under a high number, as open_high() opens it.
std::size_t read_file_high(const char* path, char* out, std::size_t capacity);

// Opens a file for reading under a number that the program does not reach by opening one file after another. The
// program may at this moment close all descriptors that it does not know, and open files of its own: they do not get
// this number, so closing it does not close one of them. Returns -1 if the file cannot be opened.
int open_high(const char* path, int flags = 0);

// A file that is read again and again.
class KeptFile {
 public:
  // Returns false if the file cannot be opened, or if the program's limit on open files is so low that the program
  // needs all of them.
  bool open(const char* path);
  void close() { descriptor_.close(); }
  // Reads its text from the beginning, with a zero byte behind it. Returns 0 if the file is gone.
  std::size_t read(char* out, std::size_t capacity);
  // The number of its hard links, 0 if the file is gone. For /proc/self/task it is the number of threads plus 2.
  std::uint64_t links();

 private:
  bool is_there(struct stat& now);

  KeptDescriptor descriptor_;
};

// True if a seccomp filter applies to the calling thread, or if that is not known. Such a filter may end the program at
// a system call that it does not list.
bool has_seccomp_filter();

// Writes a path below /sys, or below $PACELINE_TEST_SYSFS.
void sysfs_path(char* out, std::size_t capacity, const char* format, ...) __attribute__((format(printf, 3, 4)));

// Calls visit(name) for each entry of a directory that does not begin with a dot. Does nothing if there is no such
// directory.
template <class Visit>
void each_entry(const char* path, Visit visit) {
  const int descriptor = open_high(path, O_DIRECTORY);
  DIR* directory = descriptor >= 0 ? fdopendir(descriptor) : nullptr;
  if (directory == nullptr) return;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') visit(entry->d_name);
  }
  closedir(directory);
}

}  // namespace paceline::inject
