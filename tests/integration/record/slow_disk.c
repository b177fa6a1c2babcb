// SPDX-License-Identifier: Apache-2.0
// Preloaded: a disk so busy that each allocation of space takes 0.8 s.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int posix_fallocate(int file, off_t from, off_t bytes) {
  usleep(800000);
  return fallocate(file, 0, from, bytes) == 0 ? 0 : errno;
}
