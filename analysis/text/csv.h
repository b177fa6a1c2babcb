// SPDX-License-Identifier: Apache-2.0
// Fields of CSV files (RFC 4180).
#pragma once

#include <string>
#include <string_view>

namespace paceline::analysis {

// The text as one field: in quotes where it contains a comma, a quote or the end of a line.
inline std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string field = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t quote = text.find('"', at);
    field += text.substr(at, quote - at);
    if (quote == std::string_view::npos) break;
    field += "\"\"";
    at = quote + 1;
  }
  return field + '"';
}

}  // namespace paceline::analysis
