// SPDX-License-Identifier: Apache-2.0
// One event of a Chrome trace, its fields as they stand in the file.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "analysis/importers/kineto/json_tokens.h"

namespace paceline::analysis::kineto {

// Strings are without their quotes. Absent fields are empty.
struct EventFields {
  struct Argument {
    std::string_view key, value;
    char type = 0;  // '"' of a string, '{' of an object or a list, '0' of anything else
  };
  static constexpr std::size_t most_arguments = 64;

  std::string_view phase, category, name, process, thread, time, duration, id;
  std::array<Argument, most_arguments> arguments;
  std::size_t argument_count = 0;  // further ones are left out
};

// Reads the event that begins at token i and moves i behind it. Where the outcome is not `whole`, i and the fields mean
// nothing. Without recursion.
Outcome walk_event(const Tokens& tokens, std::size_t& i, EventFields& fields);

}  // namespace paceline::analysis::kineto
