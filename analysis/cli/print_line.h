// SPDX-License-Identifier: Apache-2.0
// Prints lines that contain text from traces.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "analysis/text/labels.h"

namespace paceline::cli {

// Prints one line, whatever the arguments contain: see printable(). `format` has no newline.
template <class... Arguments>
void print_line(std::FILE* file, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::print(file, "{}\n", analysis::printable(fmt::format(format, std::forward<Arguments>(arguments)...)));
}

}  // namespace paceline::cli
