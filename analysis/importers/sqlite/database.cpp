// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/sqlite/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <fstream>

#include "profiler/format/error.h"

namespace paceline::analysis {
namespace sqlite_database {

constexpr int longest_value = 16 << 20;  // bytes of one text or blob
constexpr int memory_pages_kib = 8 << 10;

// Only SELECT on tables, and the few functions that the readers use.
int authorize(void*, int action, const char*, const char* function, const char*, const char*) {
  if (action == SQLITE_SELECT || action == SQLITE_READ) return SQLITE_OK;
  if (action == SQLITE_FUNCTION && function != nullptr) {
    for (const std::string_view allowed : {"min", "max"}) {
      if (allowed == function) return SQLITE_OK;
    }
  }
  return SQLITE_DENY;
}

std::string quoted(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) text.append(c == '"' ? 2 : 1, c);
  return text + "\"";
}

// The path as a file: URI. immutable: SQLite neither locks the file nor looks for a journal beside it.
std::string uri_of(const std::filesystem::path& file) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(file).string()) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
                       c == '.' || c == '-' || c == '_';
    if (plain) {
      uri += c;
    } else {
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return uri + "?mode=ro&immutable=1";
}

// How many bytes the file is shorter than its header states, 0 if it is whole. SQLite reads zeros there.
std::uint64_t missing_bytes(const std::filesystem::path& file) {
  unsigned char header[100] = {};
  std::ifstream in(file, std::ios::binary);
  if (!in.read(reinterpret_cast<char*>(header), sizeof header)) return 0;
  const auto number = [&](std::size_t at, int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | header[at + static_cast<std::size_t>(i)];
    return value;
  };
  constexpr std::size_t page_size = 16, changes = 24, pages = 28, pages_valid_for = 92;
  if (number(changes, 4) != number(pages_valid_for, 4)) return 0;
  const std::uint64_t size = number(page_size, 2) == 1 ? 65536 : number(page_size, 2);
  std::error_code error;
  const std::uint64_t actual = std::filesystem::file_size(file, error);
  const std::uint64_t stated = size * number(pages, 4);
  return error || stated <= actual ? 0 : stated - actual;
}

}  // namespace sqlite_database

void Rows::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

bool Rows::next() {
  if (statement_ == nullptr) return false;
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) {
    ++read_;
    return true;
  }
  if (result != SQLITE_DONE) database_->note_damage(table_, read_);
  sqlite3_reset(statement_.get());
  return false;
}

bool Rows::is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }

std::int64_t Rows::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

double Rows::real(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::string_view Rows::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::string_view Rows::bytes(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

void Rows::bind(std::int64_t value) {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_.get());
  sqlite3_bind_int64(statement_.get(), 1, value);
}

void Database::Close::operator()(sqlite3* connection) const { sqlite3_close(connection); }

Database::Database(const std::filesystem::path& file, std::string name) : name_(std::move(name)) {
  sqlite3* opened = nullptr;
  const int result = sqlite3_open_v2(sqlite_database::uri_of(file).c_str(), &opened,
                                     SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  connection_.reset(opened);
  if (result != SQLITE_OK) {
    throw Error(fmt::format("{}: {}: give a file that can be read", name_,
                            opened != nullptr ? sqlite3_errmsg(opened) : "no memory"));
  }
  for (const int forbidden : {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER,
                              SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION}) {
    sqlite3_db_config(opened, forbidden, 0, nullptr);
  }
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, sqlite_database::longest_value);
  sqlite3_exec(
      opened, fmt::format("PRAGMA cell_size_check=1; PRAGMA cache_size=-{}", sqlite_database::memory_pages_kib).c_str(),
      nullptr, nullptr, nullptr);
  sqlite3_set_authorizer(opened, sqlite_database::authorize, nullptr);
  read_schema();
  if (const std::uint64_t missing = sqlite_database::missing_bytes(file); missing > 0) {
    damage_.push_back(fmt::format("the last {} bytes of the file are missing", missing));
  }
}

// Tables of the schema have a root page. Virtual tables have none.
void Database::read_schema() {
  sqlite3_stmt* statement = nullptr;
  const char* query = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0";
  if (sqlite3_prepare_v2(connection_.get(), query, -1, &statement, nullptr) != SQLITE_OK) {
    throw Error(fmt::format("{}: the database is damaged ({}): export the trace again", name_,
                            sqlite3_errmsg(connection_.get())));
  }
  Rows names(this, "sqlite_master");
  names.statement_.reset(statement);
  while (names.next()) tables_.try_emplace(std::string(names.text(0)));
  for (auto table = tables_.begin(); table != tables_.end();) {
    const std::string all = fmt::format("SELECT * FROM {}", sqlite_database::quoted(table->first));
    if (sqlite3_prepare_v2(connection_.get(), all.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
      table = tables_.erase(table);  // its definition needs something that is forbidden
      continue;
    }
    for (int column = 0; column < sqlite3_column_count(statement); ++column) {
      table->second.insert(sqlite3_column_name(statement, column));
    }
    sqlite3_finalize(statement);
    ++table;
  }
}

bool Database::has(std::string_view table, std::string_view column) const {
  const auto found = tables_.find(table);
  return found != tables_.end() && found->second.contains(column);
}

std::vector<std::string> Database::tables() const {
  std::vector<std::string> names;
  for (const auto& [table, columns] : tables_) names.push_back(table);
  return names;
}

Rows Database::rows(std::string_view table, const std::vector<std::string_view>& columns, std::string_view rest) {
  Rows rows(this, std::string(table));
  const auto found = tables_.find(table);
  if (found == tables_.end()) return rows;
  std::string query = "SELECT ";
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) query += ", ";
    query += found->second.contains(columns[i]) ? sqlite_database::quoted(columns[i]) : "NULL";
  }
  query += fmt::format(" FROM {} {}", sqlite_database::quoted(table), rest);
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(connection_.get(), query.c_str(), -1, &statement, nullptr) == SQLITE_OK) {
    rows.statement_.reset(statement);
  } else {
    note_damage(rows.table_, 0);
  }
  return rows;
}

bool Database::holds_rows(std::string_view table) { return rows(table, {""}, "LIMIT 1").next(); }

void Database::note_damage(const std::string& table, std::uint64_t rows) {
  damage_.push_back(fmt::format("{} after {} rows: {}", table, rows, sqlite3_errmsg(connection_.get())));
}

bool is_sqlite_file(const std::filesystem::path& file) {
  char first[16] = {};
  std::ifstream(file, std::ios::binary).read(first, sizeof first);
  return std::string_view(first, sizeof first) == std::string_view("SQLite format 3\0", 16);
}

}  // namespace paceline::analysis
