// SPDX-License-Identifier: Apache-2.0
#include "analysis/text/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace paceline::analysis {
namespace label_parts {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

// The length of the UTF-8 character at the front of the text and its code point; 0 where there is none.
std::size_t character_at(std::string_view text, std::uint32_t& code) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                                                             : 4;
  if (first >= 0x80 && (first < 0xC2 || first > 0xF4)) return 0;
  if (text.size() < length) return 0;
  code = length == 1 ? first : first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3FU);
  }
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool valid = code >= least[length] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  return valid ? length : 0;
}

// Terminals obey the first two, and the others change the direction of the text after them.
bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x200E && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

// Plain ASCII, as most text is, is copied as it stands.
bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7F; });
}

// Calls out(character, code) for each character; the character is the replacement where a byte is not UTF-8.
template <class Out>
void each_character(std::string_view text, Out&& out) {
  while (!text.empty()) {
    std::uint32_t code = 0;
    const std::size_t length = character_at(text, code);
    out(length == 0 ? replacement : text.substr(0, length), length == 0 ? 0xFFFDU : code);
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

std::string cleaned(std::string_view text, bool newlines) {
  if (is_plain(text)) return std::string(text);
  std::string out;
  each_character(text, [&](std::string_view character, std::uint32_t code) {
    out += is_control(code) && !(newlines && code == '\n') ? replacement : character;
  });
  return out;
}

}  // namespace label_parts

std::string printable(std::string_view text) { return label_parts::cleaned(text, false); }
std::string printable_lines(std::string_view text) { return label_parts::cleaned(text, true); }

std::string markup_escaped(std::string_view text) {
  std::string out;
  for (const char c : printable_lines(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string printable_json(std::string_view document) {
  std::string out;
  label_parts::each_character(document, [&](std::string_view character, std::uint32_t code) {
    if (label_parts::is_control(code) && code != '\n') {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += character;
    }
  });
  return out;
}

std::string label(std::string_view name, std::size_t most) {
  using namespace label_parts;
  std::vector<std::string_view> characters;
  each_character(name, [&](std::string_view character, std::uint32_t code) {
    characters.push_back(is_control(code) ? replacement : character);
  });
  const bool whole = characters.size() <= most;
  const std::size_t head = whole ? characters.size() : most / 2, tail = whole ? 0 : most - 1 - head;
  std::string out;
  for (std::size_t i = 0; i < head; ++i) out += characters[i];
  if (!whole) out += "…";
  for (std::size_t i = characters.size() - tail; i < characters.size(); ++i) out += characters[i];
  return out;
}

}  // namespace paceline::analysis
