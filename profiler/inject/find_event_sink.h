// SPDX-License-Identifier: Apache-2.0
// Finds the recorder's table (event_sink.h) from another library of the recorder, whichever way it was loaded.
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profiler/inject/event_sink.h"

namespace paceline::inject {

inline constexpr char event_sink_symbol[] = "paceline_event_sink_v1";

// Returns the table. Returns nullptr if this process has no recorder or an older one, after one line on standard error
// that `what` is not recorded. If the recorder is preloaded, its symbols are visible to every library. If only NVTX has
// loaded it, it is found by its file name, beside this library.
inline const paceline_event_sink_v1* find_event_sink(const char* what) {
  const void* symbol = dlsym(RTLD_DEFAULT, event_sink_symbol);
  if (symbol == nullptr) {
    Dl_info self{};
    char path[4096];
    if (dladdr(reinterpret_cast<const void*>(&find_event_sink), &self) != 0 && self.dli_fname != nullptr) {
      const char* slash = strrchr(self.dli_fname, '/');
      const int folder = slash != nullptr ? static_cast<int>(slash - self.dli_fname + 1) : 0;
      snprintf(path, sizeof path, "%.*slibpaceline-inject.so", folder, self.dli_fname);
      void* recorder = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
      if (recorder != nullptr) {
        symbol = dlsym(recorder, event_sink_symbol);
        dlclose(recorder);
      }
    }
  }
  const auto* sink = static_cast<const paceline_event_sink_v1*>(symbol);
  if (sink != nullptr && sink->size >= sizeof(paceline_event_sink_v1)) return sink;
  char line[256];
  const int length =
      snprintf(line, sizeof line, "paceline: %s is not recorded: this process has no Paceline recorder%s\n", what,
               sink != nullptr ? " of this version" : "; start it with \"paceline record\"");
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, static_cast<size_t>(length));
  return nullptr;
}

}  // namespace paceline::inject
