// Buffered text output of exporters, and the JSON that they share.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

class TextOutput {
 public:
  explicit TextOutput(std::FILE* file) : file_(file) {}

  void text(std::string_view text) { buffer_.append(text.data(), text.data() + text.size()); }
  template <typename... Values>
  void print(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Values>(values)...);
  }
  // Call after each line: writes the buffer when it is large. Throws Error if the file cannot be written.
  void line_done() {
    if (buffer_.size() > 1 << 18) flush();
  }
  void flush();

 private:
  std::FILE* file_;
  fmt::basic_memory_buffer<char, 1 << 12> buffer_;
};

// `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

// The trace's names as JSON strings, each made once.
class JsonNames {
 public:
  explicit JsonNames(const Trace& trace) : trace_(trace), texts_(trace.names.size()) {}
  const std::string& operator[](NameId name) {
    std::string& text = texts_[name];
    if (text.empty()) text = json_string(trace_.names[name]);
    return text;
  }

 private:
  const Trace& trace_;
  std::vector<std::string> texts_;
};

// {"domain":"mpi","bytes":4096}: the NVTX domain, if there is one, and the arguments of slice i.
void append_json_arguments(std::string& out, NameId domain, const Slices& slices, std::size_t i, JsonNames& names);

}  // namespace paceline::analysis
