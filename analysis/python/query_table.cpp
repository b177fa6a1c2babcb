// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <sstream>

#include "analysis/python/run_tables.h"
#include "analysis/query/query.h"
#include "analysis/text/text_output.h"
#include "profiler/format/error.h"

namespace paceline::python {
namespace {

// A column that grows row by row and finds its type on the way.
class GrowingColumn {
 public:
  explicit GrowingColumn(std::string name) : name_(std::move(name)) {}

  void add(const analysis::QueryValue& value) {
    if (rows_ % 8 == 0) validity_.push_back(0);
    if (std::holds_alternative<std::monostate>(value)) {
      ++nulls_;
      add_zero();
    } else {
      validity_.back() = static_cast<std::uint8_t>(validity_.back() | 1U << rows_ % 8);
      if (const auto* integer = std::get_if<std::int64_t>(&value)) {
        add_integer(*integer);
      } else if (const auto* real = std::get_if<double>(&value)) {
        add_real(*real);
      } else if (const auto* text = std::get_if<std::string_view>(&value)) {
        become_text();
        texts_.add(analysis::valid_utf8(*text));
      } else {
        throw Error(fmt::format("column {}: a BLOB cannot be read into a table; write hex({}) instead", name_, name_));
      }
    }
    ++rows_;
  }

  // The type where no value decides it, and the type that all queries of a table give.
  void set_type(ColumnType type) {
    if (type == ColumnType::text) become_text();
    if (type == ColumnType::real && type_ == ColumnType::int64) become_real();
  }

  Field field() const { return {name_, type_, nulls_ > 0}; }

  // Points into the column, which `owner` keeps alive.
  ColumnValues values(std::shared_ptr<const void> owner) const {
    ColumnValues values;
    values.owner = std::move(owner);
    values.nulls = nulls_;
    if (nulls_ > 0) values.validity = validity_.data();
    if (type_ == ColumnType::text) {
      values.values = texts_.ends.data();
      values.bytes = texts_.bytes.data();
    } else {
      values.values = type_ == ColumnType::real ? static_cast<const void*>(reals_.data()) : integers_.data();
    }
    return values;
  }

 private:
  bool is_valid(std::size_t row) const { return (validity_[row / 8] >> row % 8 & 1) != 0; }
  void add_zero() {
    if (type_ == ColumnType::text) return texts_.add("");
    type_ == ColumnType::real ? reals_.push_back(0) : integers_.push_back(0);
  }
  void add_integer(std::int64_t value) {
    if (type_ == ColumnType::text) return texts_.add(fmt::format("{}", value));
    type_ == ColumnType::real ? reals_.push_back(static_cast<double>(value)) : integers_.push_back(value);
  }
  void add_real(double value) {
    if (type_ == ColumnType::text) return texts_.add(fmt::format("{}", value));
    become_real();
    reals_.push_back(value);
  }
  void become_real() {
    if (type_ == ColumnType::real) return;
    type_ = ColumnType::real;
    reals_.assign(integers_.begin(), integers_.end());
    integers_ = {};
  }
  void become_text() {
    if (type_ == ColumnType::text) return;
    const auto number = [&](std::size_t row) {
      return type_ == ColumnType::real ? fmt::format("{}", reals_[row]) : fmt::format("{}", integers_[row]);
    };
    for (std::size_t row = 0; row < rows_; ++row) texts_.add(is_valid(row) ? number(row) : std::string());
    type_ = ColumnType::text;
    integers_ = {};
    reals_ = {};
  }

  std::string name_;
  ColumnType type_ = ColumnType::int64;
  std::size_t rows_ = 0;
  std::int64_t nulls_ = 0;
  std::vector<std::uint8_t> validity_;
  std::vector<std::int64_t> integers_;
  std::vector<double> reals_;
  Texts texts_;
};

struct Result : analysis::QuerySink {
  void begin(std::vector<std::string> names) override {
    for (std::string& name : names) columns.emplace_back(std::move(name));
  }
  void row(std::span<const analysis::QueryValue> values) override {
    for (std::size_t c = 0; c < columns.size(); ++c) columns[c].add(values[c]);
    if (++rows % (1 << 16) == 0) check();
  }
  void end() override {}

  std::vector<GrowingColumn> columns;
  std::int64_t rows = 0;
  std::function<void()> check;
};

class OneBatch : public BatchSource {
 public:
  OneBatch(std::shared_ptr<const Result> result, std::vector<Field> fields)
      : result_(std::move(result)), fields_(std::move(fields)) {}
  const std::vector<Field>& fields() const override { return fields_; }
  std::optional<Batch> next() override {
    if (!result_) return std::nullopt;
    Batch batch;
    batch.rows = result_->rows;
    for (const GrowingColumn& column : result_->columns) batch.columns.push_back(column.values(result_));
    result_.reset();
    return batch;
  }

 private:
  std::shared_ptr<const Result> result_;
  std::vector<Field> fields_;
};

std::shared_ptr<Result> run_query(const LoadedRun& run, const std::string& sql, const std::function<void()>& check) {
  auto result = std::make_shared<Result>();
  result->check = check;
  analysis::QueryRunner(run.trace()).run(sql, *result);
  result->check = {};
  return result;
}

Table table_of(std::shared_ptr<Result> result) {
  Table table{.fields = {}, .rows = result->rows, .open = {}};
  for (const GrowingColumn& column : result->columns) table.fields.push_back(column.field());
  table.open = [result = std::move(result), fields = table.fields] {
    return std::make_unique<OneBatch>(result, fields);
  };
  return table;
}

// The columns of each table that are not integers, from the text of `paceline query --schema`.
const std::map<std::string, std::map<std::string, ColumnType>>& schema_types() {
  static const auto types = [] {
    std::map<std::string, std::map<std::string, ColumnType>> found;
    std::istringstream text(analysis::query_schema_text());
    std::string table;
    for (std::string line; std::getline(text, line);) {
      if (!line.starts_with("  ")) {
        table = line.substr(0, line.find(':'));
        continue;
      }
      std::istringstream words(line);
      std::string name, type;
      words >> name >> type;
      if (type == "TEXT") found[table][name] = ColumnType::text;
      if (type == "REAL") found[table][name] = ColumnType::real;
    }
    return found;
  }();
  return types;
}

}  // namespace

Table query_table(const LoadedRun& run, const std::string& sql, const std::function<void()>& check) {
  return table_of(run_query(run, sql, check));
}

Table named_table(const LoadedRun& run, const std::string& name, const std::function<void()>& check) {
  const auto result = run_query(run, fmt::format("SELECT * FROM {}", name), check);
  if (const auto known = schema_types().find(name); known != schema_types().end()) {
    for (GrowingColumn& column : result->columns) {
      if (const auto type = known->second.find(column.field().name); type != known->second.end()) {
        column.set_type(type->second);
      }
    }
  }
  return table_of(result);
}

}  // namespace paceline::python
