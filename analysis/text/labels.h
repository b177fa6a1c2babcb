// SPDX-License-Identifier: Apache-2.0
// Text from a trace as it is printed. Names and paths in a trace are whatever the program or its author chose, and a
// terminal obeys control characters. So every text that goes to a terminal or into a document passes through here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace paceline::analysis {

// The text with control characters (also U+0080 to U+009F), bidirectional controls and bytes that are not UTF-8 as "�".
// The result is one line.
std::string printable(std::string_view text);

// The same for text of several lines: newlines stay.
std::string printable_lines(std::string_view text);

// The same with the characters that HTML and XML take for markup replaced: "&lt;".
std::string markup_escaped(std::string_view text);

// A JSON document with these characters, which are allowed in its strings, as escapes (\u009b). Newlines stay.
std::string printable_json(std::string_view document);

// The name with control characters, bidirectional controls and bytes that are not UTF-8 as "�", and at most `most`
// characters: a longer one loses its middle, for "…". `most` is at least 3.
std::string label(std::string_view name, std::size_t most);

}  // namespace paceline::analysis
