// SPDX-License-Identifier: Apache-2.0
/* A program of another C library (musl). */
#include <stdio.h>

int main(void) {
  puts("musl");
  return 3;
}
