// SPDX-License-Identifier: Apache-2.0
// sleep() of the C library: a range for each call.
#include <dlfcn.h>

#include "profiler/inject/buffer/definitions.h"
#include "profiler/inject/buffer/names.h"
#include "profiler/inject/buffer/writer.h"
#include "profiler/inject/process/lifecycle.h"
#include "profiler/inject/sources/sources.h"

namespace paceline::inject {
namespace {

constexpr std::uint16_t domain = 4097;  // NVTX has the domains below 4096, and 4096 is the recorder's own
std::uint64_t scope = 0;

void define_names() {
  scope = format::pack_scope(intern(std::string_view("sleep")), 0, domain);
  emit_surely(EventType::domain, domain | std::uint64_t{intern(std::string_view("libc"))} << 32);
}

}  // namespace

extern const Source sleep_source;  // PACELINE_SOURCE(sleep) in sources.def declares it
const Source sleep_source = {.opened = define_names};

}  // namespace paceline::inject

extern "C" __attribute__((visibility("default"))) unsigned sleep(unsigned seconds) {
  using namespace paceline::inject;
  open_recorder();  // does nothing after the first call
  recording() ? emit_push(EventType::push, scope) : skip_push();
  const auto real = reinterpret_cast<unsigned (*)(unsigned)>(dlsym(RTLD_NEXT, "sleep"));
  const unsigned left = real(seconds);
  recording() ? emit_pop(domain) : skip_pop();
  return left;
}
