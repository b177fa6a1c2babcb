// SPDX-License-Identifier: Apache-2.0
// Who is told of the program's own calls of CUPTI (cupti_calls.cpp): the watcher that libpaceline-cupti.so registers in
// the recorder's table, or null.
#pragma once

#include <atomic>

#include "profiler/inject/cupti_watcher.h"

namespace paceline::inject {

extern std::atomic<const paceline_cupti_watcher*> cupti_watcher;

}  // namespace paceline::inject
