// The names in a directory, sysfs's mostly.
#pragma once

#include <dirent.h>
#include <fcntl.h>

#include "profiler/inject/sources/counters/counters.h"

namespace paceline::inject {

// Calls visit(name) for each entry that does not begin with a dot; for none where there is no such directory.
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
