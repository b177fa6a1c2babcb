#include "analysis/scaling/runs_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "profiler/format/error.h"

namespace paceline::analysis {
namespace {

constexpr std::string_view required_columns[] = {"ranks", "epochs", "images", "seconds"};
constexpr std::string_view derived_columns[] = {"images/s", "images_per_s", "throughput"};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string_view without_byte_order_mark(std::string_view text) {
  return text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text;
}

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class TableReader {
 public:
  TableReader(std::string_view text, const std::string& name) : rest_(without_byte_order_mark(text)), name_(name) {}

  std::vector<ScalingRun> read() {
    std::vector<ScalingRun> runs;
    std::vector<std::string> fields;
    while (next_row(fields)) {
      if (header_.empty()) {
        take_header(fields);
      } else {
        runs.push_back(run_of(fields));
      }
    }
    if (header_.empty()) fail("no header: the first line must name the columns ranks,epochs,images,seconds");
    if (runs.empty()) fail("no runs below the header: add one line per run");
    return runs;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("{}:{}: {}", name_, row_line_, what));
  }

  // The next row that is neither empty nor a comment; a quoted field may hold commas and line ends.
  bool next_row(std::vector<std::string>& fields) {
    while (!rest_.empty()) {
      row_line_ = line_;
      const std::string_view line = trimmed(rest_.substr(0, rest_.find('\n')));
      if (line.empty() || line.front() == '#') {
        const auto end = rest_.find('\n');
        rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
        ++line_;
        continue;
      }
      fields.clear();
      while (take_field(fields)) {
      }
      return true;
    }
    row_line_ = std::max(1, line_ - 1);
    return false;
  }

  // Takes one field and what ends it; true where a comma did.
  bool take_field(std::vector<std::string>& fields) {
    const auto start = rest_.find_first_not_of(" \t");
    std::string field;
    std::size_t at = 0;
    if (start != std::string_view::npos && rest_[start] == '"') {
      at = start + 1;
      for (;; ++at) {
        if (at >= rest_.size()) fail("a quoted field has no closing quote: add it");
        if (rest_[at] == '"') {
          if (at + 1 >= rest_.size() || rest_[at + 1] != '"') break;
          ++at;
        }
        if (rest_[at] == '\n') ++line_;
        field += rest_[at];
      }
      ++at;
      const auto end = std::min(rest_.find_first_of(",\n", at), rest_.size());
      if (!trimmed(rest_.substr(at, end - at)).empty()) fail("text after a closing quote: quote the whole field");
      at = end;
    } else {
      at = std::min(rest_.find_first_of(",\n"), rest_.size());
      field = trimmed(rest_.substr(0, at));
    }
    fields.push_back(std::move(field));
    const bool more = at < rest_.size() && rest_[at] == ',';
    if (!more) ++line_;
    rest_ = at < rest_.size() ? rest_.substr(at + 1) : std::string_view();
    return more;
  }

  void take_header(const std::vector<std::string>& fields) {
    std::set<std::string> seen;
    for (const auto& column : fields) {
      if (column.empty()) fail("a column has no name: name it, or take the comma out");
      if (!seen.insert(column).second) fail(fmt::format("the column {} is there twice: rename or remove one", column));
    }
    for (const auto required : required_columns) {
      if (!seen.contains(std::string(required))) {
        fail(fmt::format("no column {}: the header must have ranks,epochs,images,seconds", required));
      }
    }
    header_ = fields;
  }

  double number(std::string_view column, const std::string& text) const {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
      fail(fmt::format("{} is \"{}\", not a number: write it like 57.67", column, text));
    }
    return value;
  }

  double positive(std::string_view column, const std::string& text) const {
    const double value = number(column, text);
    if (value <= 0) fail(fmt::format("{} is {}: it must be above 0", column, text));
    return value;
  }

  ScalingRun run_of(const std::vector<std::string>& fields) const {
    if (fields.size() != header_.size()) {
      fail(fmt::format("{} fields where the header has {}: give every column a value, and quote commas", fields.size(),
                       header_.size()));
    }
    ScalingRun run;
    run.label = fmt::format("{}:{}", name_, row_line_);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::string& column = header_[i];
      const std::string& text = fields[i];
      if (column == "ranks") {
        const double ranks = positive(column, text);
        if (ranks != std::floor(ranks) || ranks > 1e8)
          fail(fmt::format("ranks is {}: it must be a whole number", text));
        run.ranks = static_cast<int>(ranks);
      } else if (column == "epochs") {
        run.epochs = positive(column, text);
      } else if (column == "images") {
        run.images = positive(column, text);
      } else if (column == "seconds") {
        run.seconds = positive(column, text);
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
  std::istringstream lines{std::string(without_byte_order_mark(start))};
  for (std::string line; std::getline(lines, line);) {
    const auto text = trimmed(line);
    if (text.empty() || text.front() == '#') continue;
    std::istringstream columns{std::string(text)};
    for (std::string column; std::getline(columns, column, ',');) {
      const auto name = trimmed(column);
      if (is_one_of(name, required_columns) || name == "\"ranks\"") return true;
    }
    return false;
  }
  return false;
}

std::vector<ScalingRun> read_runs_table(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    throw Error(fmt::format("{}: cannot be read: check that it is there and readable", path.string()));
  }
  return parse_runs_table(text.str(), path.string());
}

std::vector<ScalingRun> parse_runs_table(std::string_view text, const std::string& name) {
  return TableReader(text, name).read();
}

}  // namespace paceline::analysis
