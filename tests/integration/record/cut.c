// SPDX-License-Identifier: Apache-2.0
// A program whose trace file is truncated during the recording: cut MODE DIRECTORY. It knows nothing of Paceline.
//   trace   the trace in DIRECTORY is truncated to 0 bytes
//   own     a file that the program maps is truncated, and the program has no handler
//   caught  the same, with a handler from before the first event
//   gone    DIRECTORY is removed
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static sigjmp_buf back;

static void handle(int number) {
  (void)number;
  siglongjmp(back, 1);
}

static void mark(int count) {
  for (int at = 0; at < count; ++at) nvtxMarkA("mark");
}

static void touch_missing_page(void) {
  const int file = open("own", O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || ftruncate(file, 4096) != 0) exit(2);
  volatile char* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (ftruncate(file, 0) != 0) exit(2);
  *page = 1;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const char* mode = argv[1];
  if (strcmp(mode, "caught") == 0) signal(SIGBUS, handle);
  mark(1000);
  char command[4200];
  if (strcmp(mode, "trace") == 0) {
    snprintf(command, sizeof command, "truncate -s 0 %s/*.pace", argv[2]);
    if (system(command) != 0) return 2;
  } else if (strcmp(mode, "gone") == 0) {
    snprintf(command, sizeof command, "rm -rf %s", argv[2]);
    if (system(command) != 0) return 2;
  } else if (sigsetjmp(back, 1) == 0) {
    touch_missing_page();
  }
  mark(200000);
  puts("done");
  return 0;
}
