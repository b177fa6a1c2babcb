// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/kineto/values.h"

#include <charconv>
#include <cmath>

namespace paceline::analysis::kineto {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6), put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18), put(0x80 | (code >> 12 & 0x3f)), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
  }
}

// How many bytes the UTF-8 character at text[at] has; 0 where the bytes are not UTF-8.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first < 0xf0) {
    const bool valid =
        follows(1) && follows(2) && !(first == 0xe0 && byte(1) < 0xa0) && !(first == 0xed && byte(1) >= 0xa0);
    return valid ? 3 : 0;
  }
  if (first >= 0xf0 && first < 0xf5) {
    const bool valid = follows(1) && follows(2) && follows(3) && !(first == 0xf0 && byte(1) < 0x90) &&
                       !(first == 0xf4 && byte(1) >= 0x90);
    return valid ? 4 : 0;
  }
  return 0;
}

std::optional<std::uint32_t> hex4(std::string_view text, std::size_t at) {
  std::uint32_t code = 0;
  if (at + 4 > text.size()) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + 4, code, 16);
  if (error != std::errc() || end != text.data() + at + 4) return std::nullopt;
  return code;
}

// Appends what the escape at text[at], a backslash, stands for, and returns the place behind it.
std::size_t append_escape(std::string& out, std::string_view text, std::size_t at) {
  if (at + 1 >= text.size()) return out.push_back('\\'), at + 1;
  constexpr std::string_view escapes = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
  if (const std::size_t which = escapes.find(text[at + 1]); which != escapes.npos) {
    return out.push_back(meanings[which]), at + 2;
  }
  const std::optional<std::uint32_t> code = text[at + 1] == 'u' ? hex4(text, at + 2) : std::nullopt;
  if (!code) return out.push_back('\\'), at + 1;
  if (*code < 0xd800 || *code >= 0xe000) return append_utf8(out, *code), at + 6;
  const bool pair = *code < 0xdc00 && text.substr(at + 6).starts_with("\\u");
  const std::optional<std::uint32_t> low = pair ? hex4(text, at + 8) : std::nullopt;
  if (!low || *low < 0xdc00 || *low >= 0xe000) return append_utf8(out, 0xfffd), at + 6;
  return append_utf8(out, 0x10000 + ((*code - 0xd800) << 10) + (*low - 0xdc00)), at + 12;
}

}  // namespace

std::optional<std::int64_t> nanoseconds(std::string_view text) {
  std::size_t at = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) ++at;
  std::uint64_t value = 0;
  int digits = 0, power = 3;  // of ten; microseconds are 1000 ns
  bool round_up = false, seen = false, dropped = false;
  const auto take = [&](char c, bool fraction) {
    seen = true;
    if (digits == 19 ||
        (fraction && power == 0)) {  // beyond ns or beyond 64 bits: only the first digit left out rounds
      if (!dropped) round_up = c >= '5';
      dropped = true;
      if (!fraction) ++power;
      return;
    }
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
    if (value != 0) ++digits;
    if (fraction) --power;
  };
  const std::size_t first = at;
  for (; at < text.size() && is_digit(text[at]); ++at) take(text[at], false);
  if (at < text.size() && text[at] == '.') {
    for (++at; at < text.size() && is_digit(text[at]); ++at) take(text[at], true);
  }
  if (!seen) return std::nullopt;
  if (at < text.size()) {
    const std::size_t exponent_at = at;
    if (text[at] != 'e' && text[at] != 'E') return std::nullopt;
    at = first, value = 0, digits = 0, power = 3, round_up = false;
    // With an exponent the digits are taken as they are, and the power says where the point is.
    int exponent = 0;
    std::size_t digits_at = exponent_at + 1;
    if (digits_at < text.size() && text[digits_at] == '+') ++digits_at;
    const auto [end, error] = std::from_chars(text.data() + digits_at, text.data() + text.size(), exponent);
    if (error != std::errc() || end != text.data() + text.size() || exponent < -400 || exponent > 400)
      return std::nullopt;
    power += exponent;
    bool point = false;
    for (; at < exponent_at; ++at) {
      if (text[at] == '.' && !point) {
        point = true;
        continue;
      }
      if (!is_digit(text[at])) return std::nullopt;
      if (digits == 19) {
        if (!point) ++power;
        continue;
      }
      value = value * 10 + static_cast<std::uint64_t>(text[at] - '0');
      if (value != 0) ++digits;
      if (point) --power;
    }
    for (; power < 0; ++power) {
      round_up = value % 10 >= 5;
      value /= 10;
    }
  }
  for (; power > 0 && value != 0; --power) {
    if (value > static_cast<std::uint64_t>(largest_ns)) return std::nullopt;
    value *= 10;
  }
  if (round_up) ++value;
  if (value > static_cast<std::uint64_t>(largest_ns)) return std::nullopt;
  return negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Argument> number(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const char* const end = text.data() + text.size();
  if (text[0] == '-') {
    if (const auto value = whole_number(text)) return make_argument(0, *value);
  } else {
    std::uint64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && stop == end) return make_argument(0, value);
  }
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return make_argument(0, value);
}

std::string plain_text(std::string_view raw) {
  constexpr std::size_t most = 4096;
  std::string out;
  for (std::size_t at = 0; at < raw.size();) {
    if (out.size() >= most) return out + "…";
    if (raw[at] == '\\') {
      at = append_escape(out, raw, at);
      continue;
    }
    const std::size_t length = utf8_length(raw, at);
    if (length == 0) {
      append_utf8(out, 0xfffd);
      ++at;
    } else {
      out.append(raw, at, length);
      at += length;
    }
  }
  return out;
}

std::string shape_text(std::string_view list) {
  std::string out;
  for (const char c : list) {
    if (is_digit(c)) out.push_back(c);
    if (c == ',') out += "×";
  }
  return out;
}

}  // namespace paceline::analysis::kineto
