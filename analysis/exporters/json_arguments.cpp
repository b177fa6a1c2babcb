// SPDX-License-Identifier: Apache-2.0
#include "analysis/exporters/json_arguments.h"

#include <cmath>
#include <iterator>

namespace paceline::analysis {

const std::string& JsonArguments::operator()(const Slices& slices, const SelectedSlice& slice) {
  const NameId domain = trace_.kind_of(slices, slice.index).domain;
  const RecordId record = slices.record[slice.index];
  if (!Records::is_shared(record)) {
    write(domain, slices, slice, own_);
    return own_;
  }
  Latest& latest = latest_[(record * 31 + domain) % latest_.size()];
  if (latest.slices != &slices || latest.record != record || latest.domain != domain ||
      latest.clipped != slice.clipped) {
    latest.slices = &slices, latest.record = record, latest.domain = domain, latest.clipped = slice.clipped;
    write(domain, slices, slice, latest.text);
  }
  return latest.text;
}

void JsonArguments::write(NameId domain, const Slices& slices, const SelectedSlice& slice, std::string& out) {
  out = "{";
  if (domain != 0) out += "\"domain\":" + names_[domain];
  slices.each_argument(slice.index, [&](const Argument& argument) {
    if (out.back() != '{') out += ',';
    out += names_[argument.key];
    out += ':';
    const auto print = [&](auto value) { out += TextOutput::view(fmt::format_int(value)); };
    switch (argument.type) {
      case ValueType::text:
        out += names_[argument.text()];
        break;
      case ValueType::signed_integer:
        print(static_cast<std::int64_t>(argument.bits));
        break;
      case ValueType::unsigned_integer:
        print(argument.bits);
        break;
      case ValueType::real:
        if (std::isfinite(argument.number())) {
          fmt::format_to(std::back_inserter(out), "{}", argument.number());
        } else {
          out += "null";  // JSON has no infinity
        }
        break;
    }
  });
  if (slice.clipped != Clipped::no) {
    if (out.back() != '{') out += ',';
    out += fmt::format("\"clipped\":\"{}\"", clipped_text(slice.clipped));
  }
  out += '}';
}

}  // namespace paceline::analysis
