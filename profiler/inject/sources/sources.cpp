// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/sources.h"

namespace paceline::inject {
namespace {

constexpr const Source* table[] = {
#define PACELINE_SOURCE(name) &name##_source,
#include "profiler/inject/sources/sources.def"
#undef PACELINE_SOURCE
};

}  // namespace

constinit const std::span<const Source* const> sources(table);

}  // namespace paceline::inject
