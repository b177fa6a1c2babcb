// Buffered output of exporters, and the texts that they share.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/exporters/selection.h"
#include "analysis/trace/trace.h"

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

// A text for each of the trace's names, made once where it is asked for.
template <std::string (*make)(std::string_view)>
class NameTexts {
 public:
  explicit NameTexts(const Trace& trace) : trace_(trace), texts_(trace.names.size()) {}
  const std::string& operator[](NameId name) {
    std::string& text = texts_[name];
    if (text.empty()) text = make(trace_.names[name]);
    return text;
  }

 private:
  const Trace& trace_;
  std::vector<std::string> texts_;
};
using JsonNames = NameTexts<json_string>;  // with quotes
using CleanNames = NameTexts<valid_utf8>;

// The arguments of slices as JSON objects: {"domain":"mpi","bytes":4096}, with the NVTX domain, if there is one, and
// "clipped" where the selection clipped the slice.
class JsonArguments {
 public:
  explicit JsonArguments(const Trace& trace) : trace_(trace), names_(trace) {}

  // Stays as it is until the next call.
  const std::string& operator()(const Slices& slices, const SelectedSlice& slice);
  JsonNames& names() { return names_; }

 private:
  void write(NameId domain, const Slices& slices, const SelectedSlice& slice, std::string& out);

  // What many slices have in common is written once: the latest texts, by a hash of the record and the domain.
  struct Latest {
    const Slices* slices = nullptr;
    RecordId record = 0;
    NameId domain = 0;
    Clipped clipped = Clipped::no;
    std::string text;
  };
  const Trace& trace_;
  JsonNames names_;
  std::array<Latest, 256> latest_;
  std::string own_;
};

}  // namespace paceline::analysis
