// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/clock_exchange/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/inject/system/descriptor.h"

namespace paceline::inject {
namespace secret_file {

void print_path(char* out, std::size_t capacity, const char* directory, std::uint64_t job) {
  snprintf(out, capacity, "%s/.clock-%016" PRIx64 ".key", directory, job);
}

// The owner of the directory could replace the file anyway; on network file systems root has another owner's name.
bool is_private(const struct stat& file, const char* directory) {
  struct stat parent {};
  const bool ours = file.st_uid == geteuid() || (stat(directory, &parent) == 0 && file.st_uid == parent.st_uid);
  return ours && S_ISREG(file.st_mode) && (file.st_mode & 077) == 0;
}

bool read_secret(const char* path, const char* directory, SipKey& secret) {
  const Descriptor file(open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file.is_open() || fstat(file.number(), &status) != 0 || !is_private(status, directory)) return false;
  constexpr int most_waits = 100;
  for (int waits = 0; waits < most_waits; ++waits) {
    if (pread(file.number(), &secret, sizeof secret, 0) == static_cast<ssize_t>(sizeof secret)) return true;
    usleep(1000);  // another recorder has just made the file
  }
  return false;
}

}  // namespace secret_file

bool share_secret(const char* directory, std::uint64_t job, SipKey& secret) {
  using namespace secret_file;
  char path[4096 + 64];
  print_path(path, sizeof path, directory, job);
  const Descriptor made(open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!made.is_open()) return errno == EEXIST && read_secret(path, directory, secret);
  struct stat status {};
  if (getrandom(&secret, sizeof secret, 0) == static_cast<ssize_t>(sizeof secret) &&
      fstat(made.number(), &status) == 0 && is_private(status, directory) &&
      write(made.number(), &secret, sizeof secret) == static_cast<ssize_t>(sizeof secret)) {
    return true;
  }
  unlink(path);
  return false;
}

void remove_secret(const char* directory, std::uint64_t job) {
  if (any_beacon(directory, job)) return;
  char path[4096 + 64];
  secret_file::print_path(path, sizeof path, directory, job);
  unlink(path);
}

}  // namespace paceline::inject
