// SPDX-License-Identifier: Apache-2.0
#include "analysis/query/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/text/csv.h"
#include "analysis/text/labels.h"
#include "analysis/text/text_output.h"

namespace paceline::analysis {
namespace query_outputs {

// The shortest text that reads back as the same number. Whole numbers keep a sign that they are real: "2.0".
std::string real_text(double value) {
  if (!std::isfinite(value)) return value > 0 ? "inf" : value < 0 ? "-inf" : "nan";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string hex_text(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

// A value as text, "" for NULL.
std::string text_of(const QueryValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* real = std::get_if<double>(&value)) return real_text(*real);
  if (const auto* text = std::get_if<std::string_view>(&value)) return std::string(*text);
  if (const auto* bytes = std::get_if<QueryBytes>(&value)) return hex_text(bytes->bytes);
  return "";
}

std::string escaped(std::string_view text, bool with_backslash) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\\' && with_backslash) {
      out += "\\\\";
    } else {
      out += c;
    }
  }
  return printable(out);
}

class CsvSink : public QuerySink {
 public:
  CsvSink(std::FILE* file, char separator) : out_(file), separator_(separator) {}

  void begin(std::vector<std::string> columns) override {
    line(columns, [](const auto& name) { return name; });
  }
  void row(std::span<const QueryValue> values) override { line(values, text_of); }
  void end() override { out_.flush(); }

 private:
  template <class List, class Text>
  void line(const List& list, Text&& text) {
    bool first = true;
    for (const auto& item : list) {
      if (!first) out_.text(std::string_view(&separator_, 1));
      first = false;
      const std::string cell = text(item);
      out_.text(separator_ == ',' ? csv_field(printable_lines(cell)) : escaped(cell, true));
    }
    out_.text("\n");
    out_.line_done();
  }

  TextOutput out_;
  const char separator_;
};

class JsonSink : public QuerySink {
 public:
  explicit JsonSink(std::FILE* file) : out_(file) {}

  // Names of keys have to differ.
  void begin(std::vector<std::string> columns) override {
    std::set<std::string> used;
    for (const std::string& column : columns) {
      std::string key = column;
      for (int number = 2; !used.insert(key).second; ++number) key = fmt::format("{}_{}", column, number);
      keys_.push_back(printable_json(json_string(key)));
    }
    out_.text("[");
  }
  void row(std::span<const QueryValue> values) override {
    out_.text(first_ ? "\n{" : ",\n{");
    first_ = false;
    for (std::size_t c = 0; c < values.size(); ++c) {
      if (c > 0) out_.text(", ");
      out_.text(keys_[c]);
      out_.text(": ");
      out_.text(json_of(values[c]));
    }
    out_.text("}");
    out_.line_done();
  }
  void end() override {
    out_.text(first_ ? "]\n" : "\n]\n");
    out_.flush();
  }

 private:
  static std::string json_of(const QueryValue& value) {
    if (std::holds_alternative<std::monostate>(value)) return "null";
    if (const auto* real = std::get_if<double>(&value)) return std::isfinite(*real) ? real_text(*real) : "null";
    if (std::holds_alternative<std::int64_t>(value)) return text_of(value);
    return printable_json(json_string(text_of(value)));
  }

  TextOutput out_;
  std::vector<std::string> keys_;
  bool first_ = true;
};

class TableSink : public QuerySink {
 public:
  explicit TableSink(std::FILE* file) : out_(file) {}

  void begin(std::vector<std::string> columns) override {
    names_ = std::move(columns);
    for (std::string& name : names_) name = escaped(name, false);
    widths_.resize(names_.size());
    is_text_.resize(names_.size());
  }
  void row(std::span<const QueryValue> values) override {
    std::vector<std::string> cells;
    for (std::size_t c = 0; c < values.size(); ++c) {
      cells.push_back(escaped(text_of(values[c]), false));
      if (!measured_) {
        is_text_[c] = is_text_[c] || std::holds_alternative<std::string_view>(values[c]) ||
                      std::holds_alternative<QueryBytes>(values[c]);
      }
    }
    if (measured_) return line(cells);
    waiting_.push_back(std::move(cells));
    if (waiting_.size() == 1000) print_waiting();
  }
  void end() override {
    if (!measured_) print_waiting();
    out_.flush();
  }

 private:
  // Characters, as far as each takes one place on the terminal.
  static std::size_t width(const std::string& text) {
    return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
  }

  void print_waiting() {
    measured_ = true;
    for (std::size_t c = 0; c < names_.size(); ++c) {
      widths_[c] = width(names_[c]);
      for (const auto& cells : waiting_) widths_[c] = std::max(widths_[c], width(cells[c]));
    }
    line(names_);
    for (const auto& cells : waiting_) line(cells);
    waiting_.clear();
  }

  void line(const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::size_t blanks = widths_[c] - std::min(widths_[c], width(cells[c]));
      if (c > 0) text += "  ";
      if (!is_text_[c]) text.append(blanks, ' ');
      text += cells[c];
      if (is_text_[c]) text.append(blanks, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out_.text(text);
    out_.text("\n");
    out_.line_done();
  }

  TextOutput out_;
  std::vector<std::string> names_;
  std::vector<std::size_t> widths_;
  std::vector<char> is_text_;
  std::vector<std::vector<std::string>> waiting_;  // until the widths are known
  bool measured_ = false;
};

}  // namespace query_outputs

std::unique_ptr<QuerySink> query_output(QueryFormat format, std::FILE* out) {
  using namespace query_outputs;
  switch (format) {
    case QueryFormat::csv:
      return std::make_unique<CsvSink>(out, ',');
    case QueryFormat::tsv:
      return std::make_unique<CsvSink>(out, '\t');
    case QueryFormat::json:
      return std::make_unique<JsonSink>(out);
    case QueryFormat::table:
      break;
  }
  return std::make_unique<TableSink>(out);
}

}  // namespace paceline::analysis
