// SPDX-License-Identifier: Apache-2.0
// The debug annotations of an event as arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/importers/perfetto/sequences.h"
#include "analysis/trace/records.h"

namespace paceline::analysis::perfetto {

struct Value {
  TextId key = 0;
  ValueType type = ValueType::unsigned_integer;
  std::uint64_t bits = 0;  // of a text its TextId
  bool json = false;       // the text is JSON
};

// Appends the annotation's value. One that has parts becomes several: "grid.x", "sizes[0]". Annotations of another kind
// than the format has, and parts more than eight levels deep, are left out.
void add_values(std::string_view annotation, const Sequence& sequence, Texts& texts, std::vector<Value>& values);

}  // namespace paceline::analysis::perfetto
