// SPDX-License-Identifier: Apache-2.0
// cudaProfilerStart and cudaProfilerStop (and the driver's cuProfilerStart, cuProfilerStop) as a switch for recording:
// --capture-range. These functions take the place of the CUDA library's, so that neither a GPU nor CUDA is needed. They
// also call the real function if there is one.
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "profiler/inject/buffer/writer.h"
#include "profiler/inject/process/control.h"
#include "profiler/inject/process/lifecycle.h"
#include "profiler/inject/sources/sources.h"
#include "profiler/inject/system/settings.h"
#include "profiler/launch/environment.h"

namespace paceline::inject {
namespace {

using Function = int (*)();

// RTLD_NEXT does not see the libraries that Python loads with its extensions. So this looks at all loaded libraries.
struct Wanted {
  const char* library;
  const char* symbol;
  void* found;
};
int look_into(dl_phdr_info* info, std::size_t, void* data) {
  auto* wanted = static_cast<Wanted*>(data);
  if (info->dlpi_name == nullptr || strstr(info->dlpi_name, wanted->library) == nullptr) return 0;
  void* library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  wanted->found = dlsym(library, wanted->symbol);
  dlclose(library);
  return wanted->found != nullptr ? 1 : 0;
}

int call_real(const char* library, const char* symbol) {
  void* real = dlsym(RTLD_NEXT, symbol);
  if (real == nullptr) {
    Wanted wanted{library, symbol, nullptr};
    dl_iterate_phdr(look_into, &wanted);
    real = wanted.found;
  }
  return real != nullptr ? reinterpret_cast<Function>(real)() : 0;
}

void capture(bool on) {
  if (!is_switched_on(record::env_capture_range)) return;
  open_recorder();
  set_pause(format::outside_capture, !on);
}

}  // namespace

const Source capture_range_source = {.start = [] {
  if (is_switched_on(record::env_capture_range)) set_pause(format::outside_capture, true);
}};

}  // namespace paceline::inject

#define PACELINE_CAPTURE(symbol, library, on)                         \
  extern "C" __attribute__((visibility("default"))) int symbol() {    \
    if (on) paceline::inject::capture(true);                          \
    const int result = paceline::inject::call_real(library, #symbol); \
    if (!on) paceline::inject::capture(false);                        \
    return result;                                                    \
  }
PACELINE_CAPTURE(cudaProfilerStart, "libcudart", true)
PACELINE_CAPTURE(cudaProfilerStop, "libcudart", false)
PACELINE_CAPTURE(cuProfilerStart, "libcuda.", true)
PACELINE_CAPTURE(cuProfilerStop, "libcuda.", false)
