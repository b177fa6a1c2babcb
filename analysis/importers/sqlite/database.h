// SPDX-License-Identifier: Apache-2.0
// A trace in a SQLite database, read-only. The file is data from elsewhere: nothing in it is executed. Views, triggers,
// virtual tables and functions of the schema are refused, extensions are not loaded, and neither the file nor a
// journal beside it is changed. A damaged page ends the reading of its table, and the rows before it count.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace paceline::analysis {

class Database;

// The rows of one query, one after the other:
//
//   for (Rows rows = database.rows("NVTX_EVENTS", {"start", "end"}); rows.next();) … rows.integer(0) …
class Rows {
 public:
  // False after the last row. Damage ends the rows, too, and is remembered by the database.
  bool next();
  bool is_null(int column) const;
  // The value as SQLite converts it: 0 and "" for NULL. A text stays valid until the next row.
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string_view text(int column) const;
  std::string_view bytes(int column) const;
  // Restarts the query with this value for its one parameter.
  void bind(std::int64_t value);

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Rows(Database* database, std::string table) : database_(database), table_(std::move(table)) {}

  Database* database_;
  std::string table_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;  // nullptr: no rows
  std::uint64_t read_ = 0;
};

class Database {
 public:
  // `name` is for messages. Throws Error where the file is not a readable database.
  Database(const std::filesystem::path& file, std::string name);

  bool has(std::string_view table) const { return tables_.contains(table); }
  bool has(std::string_view table, std::string_view column) const;

  // The rows of a table with these columns; NULL stands for a column that the table does not have. No rows where there
  // is no such table. `rest` follows the table's name in the query: "WHERE id = ?".
  Rows rows(std::string_view table, const std::vector<std::string_view>& columns, std::string_view rest = "");

  // True if the table has a row. O(1).
  bool holds_rows(std::string_view table);

  const std::string& name() const { return name_; }
  // The names of its tables that can be read.
  std::vector<std::string> tables() const;
  // What could not be read, one text for each table: "NVTX_EVENTS after 120 rows: database disk image is malformed".
  const std::vector<std::string>& damage() const { return damage_; }

 private:
  friend class Rows;
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  void read_schema();
  const std::set<std::string, std::less<>>& columns_of(const std::string& table);
  void note_damage(const std::string& table, std::uint64_t rows);

  std::string name_;
  std::unique_ptr<sqlite3, Close> connection_;
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> tables_;  // and their columns
  std::vector<std::string> damage_;
};

// True if the file begins as a SQLite database does.
bool is_sqlite_file(const std::filesystem::path& file);

}  // namespace paceline::analysis
