// SPDX-License-Identifier: Apache-2.0
// Buffered output of text, and text as JSON.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>

namespace paceline::analysis {

class TextOutput {
 public:
  explicit TextOutput(std::FILE* file) : file_(file) {}

  // Text or bytes.
  void text(std::string_view text) { buffer_.append(text.data(), text.data() + text.size()); }
  void number(std::int64_t value) { text(view(fmt::format_int(value))); }
  template <typename... Values>
  void print(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Values>(values)...);
  }
  // Call after each line: writes the buffer when it is large. Throws Error if the file cannot be written.
  void line_done() {
    if (buffer_.size() > 1 << 18) flush();
  }
  void flush();
  // The bytes so far.
  std::uint64_t size() const { return written_ + buffer_.size(); }

  static std::string_view view(const fmt::format_int& number) { return {number.data(), number.size()}; }

 private:
  std::FILE* file_;
  std::uint64_t written_ = 0;
  fmt::basic_memory_buffer<char, 1 << 12> buffer_;
};

// `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

// `text` with U+FFFD for bytes that are not UTF-8, as json_string() has it.
std::string valid_utf8(std::string_view text);

}  // namespace paceline::analysis
