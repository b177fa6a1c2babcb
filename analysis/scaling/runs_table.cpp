// SPDX-License-Identifier: Apache-2.0
#include "analysis/scaling/runs_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <set>
#include <span>

#include <fmt/format.h>

#include "profiler/format/error.h"

namespace paceline::analysis {
namespace {

constexpr std::string_view required_columns[] = {"ranks", "epochs", "images", "seconds"};
constexpr std::string_view derived_columns[] = {"images/s", "images_per_s", "throughput"};
constexpr std::string_view header_line = "ranks,epochs,images,seconds";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

std::string_view without_byte_order_mark(std::string_view text) {
  return text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text;
}

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// How many of the four columns a line names if `separator` separates its fields. Quoted names count without their
// quotes.
std::size_t named_columns(std::string_view line, char separator) {
  std::size_t named = 0;
  while (true) {
    const auto end = std::min(line.find(separator), line.size());
    std::string_view name = trimmed(line.substr(0, end));
    if (name.size() > 1 && name.front() == '"' && name.back() == '"') name = name.substr(1, name.size() - 2);
    named += is_one_of(in_lower_case(name), required_columns);
    if (end == line.size()) return named;
    line.remove_prefix(end + 1);
  }
}

// The separator with which a header line names most of the four columns.
struct Header {
  char separator = ',';
  std::size_t named = 0;
};
Header header_of(std::string_view line) {
  Header best;
  for (const char separator : {',', ';', '\t'}) {
    if (const std::size_t named = named_columns(line, separator); named > best.named) best = {separator, named};
  }
  return best;
}

// The first line that is neither empty nor a comment.
std::string_view first_line(std::string_view text) {
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of("\r\n"), text.size());
    const auto line = trimmed(text.substr(0, end));
    if (!line.empty() && line.front() != '#') return line;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

class TableReader {
 public:
  TableReader(std::string_view text, const std::string& name) : rest_(without_byte_order_mark(text)), name_(name) {}

  std::vector<ScalingRun> read() {
    refuse_other_files();
    separator_ = header_of(first_line(rest_)).separator;
    ends_ = {separator_, '\r', '\n'};
    std::vector<ScalingRun> runs;
    std::vector<std::string> fields;
    while (next_row(fields)) {
      if (header_.empty()) {
        take_header(fields);
      } else {
        runs.push_back(run_of(fields));
      }
    }
    if (header_.empty()) fail(fmt::format("no header: the first line must name the columns {}", header_line));
    if (runs.empty()) fail("no runs below the header: add one line per run");
    return runs;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("{}:{}: {}", name_, row_line_, what));
  }

  void refuse_other_files() const {
    if (rest_.starts_with("\xff\xfe") || rest_.starts_with("\xfe\xff")) {
      fail("the text is UTF-16: save the table as CSV in UTF-8");
    }
    if (rest_.find('\0') != std::string_view::npos) {
      fail(fmt::format("not text: a table of runs is a CSV file with the header {}", header_line));
    }
    if (trimmed(rest_).find_first_not_of('\n') == std::string_view::npos) {
      fail(fmt::format("the file is empty: a table of runs has the header {} and one line per run", header_line));
    }
  }

  // Takes the end of a line: LF, CR LF or CR.
  void take_line_end() {
    if (rest_.empty()) return;
    rest_.remove_prefix(rest_.starts_with("\r\n") ? 2 : 1);
    ++line_;
  }

  // The next row that is neither empty nor a comment; a quoted field may hold separators and line ends.
  bool next_row(std::vector<std::string>& fields) {
    while (!rest_.empty()) {
      row_line_ = line_;
      const auto end = std::min(rest_.find_first_of("\r\n"), rest_.size());
      const std::string_view line = trimmed(rest_.substr(0, end));
      if (line.empty() || line.front() == '#') {
        rest_.remove_prefix(end);
        take_line_end();
        continue;
      }
      std::size_t count = 0;
      do {
        if (count == fields.size()) fields.emplace_back();
      } while (take_field(fields[count++]));
      fields.resize(count);
      return true;
    }
    row_line_ = std::max(1, line_ - 1);
    return false;
  }

  // Takes one field and what ends it; true where a separator did.
  bool take_field(std::string& field) {
    const auto start = rest_.find_first_not_of(separator_ == '\t' ? " " : " \t");
    field.clear();
    std::size_t at = 0;
    if (start != std::string_view::npos && rest_[start] == '"') {
      at = start + 1;
      for (;; ++at) {
        if (at >= rest_.size()) fail("a quoted field has no closing quote: add it");
        if (rest_[at] == '"') {
          if (at + 1 >= rest_.size() || rest_[at + 1] != '"') break;
          ++at;
        }
        if (rest_[at] == '\n' || (rest_[at] == '\r' && rest_.substr(at, 2) != "\r\n")) ++line_;
        field += rest_[at];
      }
      ++at;
      const auto end = std::min(rest_.find_first_of(ends(), at), rest_.size());
      if (!trimmed(rest_.substr(at, end - at)).empty()) fail("text after a closing quote: quote the whole field");
      at = end;
    } else {
      at = std::min(rest_.find_first_of(ends()), rest_.size());
      field = trimmed(rest_.substr(0, at));
    }
    rest_.remove_prefix(at);
    const bool more = !rest_.empty() && rest_.front() == separator_;
    if (more) {
      rest_.remove_prefix(1);
    } else {
      take_line_end();
    }
    return more;
  }

  std::string_view ends() const { return {ends_.data(), ends_.size()}; }

  void take_header(const std::vector<std::string>& fields) {
    std::set<std::string> seen;
    for (const auto& field : fields) {
      const std::string column = in_lower_case(field);
      if (column.empty()) fail("a column has no name: name it, or remove the separator");
      if (!seen.insert(column).second) fail(fmt::format("the column {} appears twice: rename or remove one", column));
      header_.push_back(column);
    }
    for (const auto required : required_columns) {
      if (!seen.contains(std::string(required))) {
        fail(fmt::format("no column {}: the header must have {}", required, header_line));
      }
    }
  }

  double number(std::string_view column, const std::string& text) const {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value)) return value;
    if (text.empty()) fail(fmt::format("{} is empty: every run needs a value there", column));
    if (text.find(',') != std::string::npos && text.find_first_not_of("0123456789,.-") == std::string::npos) {
      fail(
          fmt::format("{} is \"{}\": write numbers with a decimal point and without separators of thousands, "
                      "like 1057.67",
                      column, text));
    }
    fail(fmt::format("{} is \"{}\", not a number: write it like 57.67", column, text));
  }

  double positive(std::string_view column, const std::string& text) const {
    const double value = number(column, text);
    if (value <= 0) fail(fmt::format("{} is {}: it must be above 0", column, text));
    return value;
  }

  ScalingRun run_of(const std::vector<std::string>& fields) const {
    if (fields.size() != header_.size()) {
      const bool more = fields.size() > header_.size();
      fail(fmt::format("{} fields where the header has {}: {}", fields.size(), header_.size(),
                       more && separator_ == ','
                           ? "write numbers with a decimal point, and quote fields that have commas"
                           : "give every column one value, and quote fields that have separators"));
    }
    ScalingRun run;
    run.label = fmt::format("{}:{}", name_, row_line_);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::string& column = header_[i];
      const std::string& text = fields[i];
      if (column == "ranks") {
        const double ranks = positive(column, text);
        if (ranks != std::floor(ranks) || ranks > 1e8) {
          fail(fmt::format("ranks is {}: it must be a whole number, 100 million at most", text));
        }
        run.ranks = static_cast<int>(ranks);
      } else if (column == "epochs") {
        run.epochs = positive(column, text);
      } else if (column == "images") {
        run.images = positive(column, text);
      } else if (column == "seconds") {
        run.seconds = positive(column, text);
      } else if (column == "seconds_sd") {
        if (text.empty()) continue;
        run.seconds_sd = number(column, text);
        if (*run.seconds_sd < 0) fail(fmt::format("seconds_sd is {}: it cannot be below 0", text));
      } else if (column == "accuracy") {
        if (text.empty()) continue;
        run.accuracy = number(column, text);
        if (*run.accuracy < 0 || *run.accuracy > 1) {
          fail(fmt::format("accuracy is {}: it must be a share from 0 to 1 (0.93, not 93)", text));
        }
      } else if (column == "seconds_to_accuracy") {
        if (!text.empty()) run.seconds_to_accuracy = positive(column, text);
      } else if (!is_one_of(column, derived_columns)) {
        run.config[column] = text;
      }
    }
    return run;
  }

  std::string_view rest_;
  std::string name_;
  char separator_ = ',';
  std::array<char, 3> ends_{};
  int line_ = 1, row_line_ = 1;
  std::vector<std::string> header_;
};

}  // namespace

bool looks_like_runs_table(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string start(65536, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(file.gcount()));
  if (start.find('\0') != std::string::npos) return false;
  return header_of(first_line(without_byte_order_mark(start))).named > 0;
}

std::vector<ScalingRun> read_runs_table(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  constexpr std::uintmax_t most_bytes = std::uintmax_t{1} << 30;
  if (!error && size > most_bytes) {
    throw Error(fmt::format("{}: is too large for a table of runs: use at most 1 GiB", path.string()));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(error ? 0 : size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (error || !file) {
    throw Error(fmt::format("{}: cannot be read: check that it is there and readable", path.string()));
  }
  return parse_runs_table(text, path.string());
}

std::vector<ScalingRun> parse_runs_table(std::string_view text, const std::string& name) {
  return TableReader(text, name).read();
}

}  // namespace paceline::analysis
