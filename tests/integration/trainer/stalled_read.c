// SPDX-License-Identifier: Apache-2.0
// Preloaded: read() of a file whose path contains $STALLED_PATH never returns, as on a file server that is gone. Then
// there is a file $STALLED_MARK with the rank in it, as Open MPI numbers it.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t read(int file, void* buffer, size_t count) {
  const char* path = getenv("STALLED_PATH");
  char link[64], target[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = path ? readlink(link, target, sizeof target - 1) : -1;
  if (length > 0) {
    target[length] = 0;
    if (strstr(target, path)) {
      const char* mark = getenv("STALLED_MARK");
      const char* rank = getenv("OMPI_COMM_WORLD_RANK");
      FILE* out = mark ? fopen(mark, "w") : NULL;
      if (out) {
        fputs(rank ? rank : "0", out);
        fclose(out);
      }
      while (1) pause();
    }
  }
  return syscall(SYS_read, file, buffer, count);
}
