// SPDX-License-Identifier: Apache-2.0
// The declarations of all event sources. Each is defined beside its code: const Source NAME_source = {…}.
#pragma once

#include "profiler/inject/process/source.h"

namespace paceline::inject {

#define PACELINE_SOURCE(name) extern const Source name##_source;
#include "profiler/inject/sources/sources.def"
#undef PACELINE_SOURCE

}  // namespace paceline::inject
