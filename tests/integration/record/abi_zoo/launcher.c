// SPDX-License-Identifier: Apache-2.0
// usage: launcher COMMAND…: becomes the command. It is linked statically, too.
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc > 1) execvp(argv[1], argv + 1);
  return 127;
}
