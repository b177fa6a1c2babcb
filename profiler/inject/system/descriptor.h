// SPDX-License-Identifier: Apache-2.0
// File descriptors: one that is closed at the end of its scope, and one that the recorder keeps open.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

namespace paceline::inject {

// Closes the descriptor at the end of the scope.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (is_open()) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  // Gives the descriptor away, which then stays open.
  int release() {
    const int number = number_;
    number_ = -1;
    return number;
  }

 private:
  int number_;
};

// A descriptor that the recorder keeps open beside the program. The program may close descriptors that it does not know
// and get the same number for a file of its own. Therefore this class remembers the file, and the recorder calls
// is_ours() before each use. The destructor closes nothing, because other threads may still record when it runs.
class KeptDescriptor {
 public:
  // Takes over an open descriptor. Returns false if it is -1 or unusable.
  bool keep(int number) {
    struct stat now {};
    number_ = number;
    if (number < 0 || fstat(number, &now) != 0) return false;
    device_ = now.st_dev;
    inode_ = now.st_ino;
    return true;
  }
  // The same file under another number.
  void move_to(int number) { number_ = number; }

  // True if the number still means the same file. `now` is the file's status.
  bool is_ours(struct stat& now) const {
    return number_ >= 0 && fstat(number_, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_;
  }
  bool is_ours() const {
    struct stat now {};
    return is_ours(now);
  }

  // Closes it if it is still the recorder's.
  void close() {
    if (is_ours()) ::close(number_);
    number_ = -1;
  }
  // Leaves the number to the program.
  void forget() { number_ = -1; }
  int number() const { return number_; }

 private:
  int number_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace paceline::inject
