// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/system/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace paceline::inject {

void say(const char* format, ...) {
  char line[1024] = "paceline: ";
  const size_t start = strlen(line);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line + start, sizeof line - start - 1, format, arguments);
  va_end(arguments);
  const size_t length = strlen(line);
  line[length] = '\n';
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, length + 1);
}

}  // namespace paceline::inject
