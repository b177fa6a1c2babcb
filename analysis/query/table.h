// SPDX-License-Identifier: Apache-2.0
// Tables that SQLite reads through its interface for virtual tables (https://sqlite.org/vtab.html): a Table describes
// its columns and chooses how to find rows, its cursors walk them. Nothing is copied into SQLite.
//
// Tables are read-only. An exception that leaves a table becomes an error of the SQL statement.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::analysis {

struct QueryColumn {
  const char* name;
  const char* type;  // INTEGER, REAL or TEXT
  const char* unit;  // "ns", "bytes", "" …
  const char* meaning;
};

enum class Operator : char {
  equal = '=',
  less = '<',
  at_most = '(',
  greater = '>',
  at_least = ')',
  like = 'l',
  glob = 'g',
  none = 0
};

// A condition of the statement that a table has taken: COLUMN comparison value. Column -1 is the row id.
struct Condition {
  int column = 0;
  Operator comparison = Operator::equal;
  sqlite3_value* value = nullptr;
};

// One way of reading a table, which SQLite offers and the table completes (xBestIndex).
class QueryPlan {
 public:
  explicit QueryPlan(sqlite3_index_info& info) : info_(info) {}

  // The conditions that the statement offers. `text` is true where the column may be compared as bytes.
  struct Offer {
    int index = 0, column = 0;
    Operator comparison = Operator::none;
    bool binary = true;
  };
  std::vector<Offer> offers() const;
  // The cursor will get the value. `exact`: SQLite need not check the condition again.
  void take(const Offer& offer, bool exact);

  struct OrderTerm {
    int column = 0;
    bool descending = false;
  };
  std::vector<OrderTerm> order() const;
  // The cursor returns the rows in that order.
  void order_is_kept() { info_.orderByConsumed = 1; }

  // A number for the cursor.
  void set_mode(int mode) { info_.idxNum = mode; }
  // The estimated number of rows, and the cost of finding them in the time that one row takes.
  void estimate(double rows, double cost, bool unique = false);

  const std::string& taken() const { return taken_; }

 private:
  sqlite3_index_info& info_;
  std::string taken_;  // two characters for each value: the column and the comparison
};

class QueryCursor {
 public:
  virtual ~QueryCursor() = default;
  // Goes to the first row.
  virtual void filter(int mode, std::span<const Condition> conditions) = 0;
  virtual void next() = 0;
  virtual void column(sqlite3_context* context, int column) = 0;
  virtual std::int64_t row_id() const = 0;
  bool at_end() const { return at_end_; }

 protected:
  bool at_end_ = true;
};

class QueryTable {
 public:
  QueryTable(const char* name, const char* meaning) : name_(name), meaning_(meaning) {}
  QueryTable(const QueryTable&) = delete;
  QueryTable& operator=(const QueryTable&) = delete;
  virtual ~QueryTable() = default;

  const char* name() const { return name_; }
  const char* meaning() const { return meaning_; }
  virtual std::span<const QueryColumn> columns() const = 0;
  virtual void plan(QueryPlan& plan) const = 0;
  virtual std::unique_ptr<QueryCursor> open() = 0;

 private:
  const char* name_;
  const char* meaning_;
};

// The table must outlive the database. Throws Error.
void add_table(sqlite3* database, QueryTable& table);

// The tables of `paceline query`. Each needs the data for its life.
class RunData;
std::unique_ptr<QueryTable> slices_table(RunData& data);
std::unique_ptr<QueryTable> marks_table(RunData& data);
std::unique_ptr<QueryTable> arguments_table(RunData& data);
std::unique_ptr<QueryTable> kinds_table(RunData& data);
std::unique_ptr<QueryTable> ranks_table(RunData& data);
std::unique_ptr<QueryTable> tracks_table(RunData& data);
std::unique_ptr<QueryTable> phases_table(RunData& data);
std::unique_ptr<QueryTable> iterations_table(RunData& data);
std::unique_ptr<QueryTable> collectives_table(RunData& data);
std::unique_ptr<QueryTable> messages_table(RunData& data);
std::unique_ptr<QueryTable> counters_table(RunData& data);
std::unique_ptr<QueryTable> thread_states_table(RunData& data);
std::unique_ptr<QueryTable> stack_samples_table(RunData& data);
std::unique_ptr<QueryTable> frames_table(RunData& data);

// Text that stays where it is while the statement runs.
inline void give_text(sqlite3_context* context, std::string_view text) {
  sqlite3_result_text64(context, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

}  // namespace paceline::analysis
