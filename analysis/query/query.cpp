// SPDX-License-Identifier: Apache-2.0
#include "analysis/query/query.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "analysis/query/functions.h"
#include "analysis/query/run_data.h"
#include "analysis/query/table.h"
#include "analysis/text/lists.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace query_running {

std::vector<std::unique_ptr<QueryTable>> make_tables(RunData& data) {
  std::vector<std::unique_ptr<QueryTable>> tables;
  for (auto* table : {slices_table, marks_table, arguments_table, kinds_table, ranks_table, tracks_table, phases_table,
                      iterations_table, collectives_table, messages_table, counters_table, thread_states_table,
                      stack_samples_table, frames_table}) {
    tables.push_back(table(data));
  }
  return tables;
}

// Reading only: no table can be made or changed, no file attached, no setting changed.
int authorize(void*, int action, const char*, const char*, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_FUNCTION:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    default:
      return SQLITE_DENY;
  }
}

// How many letters differ, as Levenshtein counts; letter case does not.
std::size_t distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, corner + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1)});
      corner = above;
    }
  }
  return row[b.size()];
}

// The up to three names that are nearest to `wanted`: alike, or one a part of the other.
std::vector<std::string> near(const std::string& wanted, const std::vector<std::string>& names) {
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const std::string& name : names) {
    std::size_t far = distance(wanted, name);
    const bool part = wanted.size() > 2 && (name.find(wanted) != name.npos || wanted.find(name) != wanted.npos);
    if (part) far = std::min<std::size_t>(far, 2);
    const std::pair entry(far, name);
    const bool alike = far <= std::max<std::size_t>(2, wanted.size() / 3);
    if (alike && std::ranges::find(found, entry) == found.end()) found.push_back(entry);
  }
  std::ranges::stable_sort(found);
  std::vector<std::string> nearest;
  for (const auto& [far, name] : found) {
    if (nearest.size() < 3 && far <= found.front().first + 1) nearest.push_back(name);
  }
  return nearest;
}

std::string near_text(const std::vector<std::string>& names) {
  return fmt::format("near {} {}", names.size() == 1 ? "is" : "are", list_text(names));
}

std::string after(const std::string& message, std::string_view begin) {
  return message.starts_with(begin) ? message.substr(begin.size()) : std::string();
}

bool only_blanks(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0 || c == ';'; });
}

}  // namespace query_running

struct QueryRunner::State {
  State(const RunIndex& index, std::unique_ptr<const RunIndex> owned)
      : own_index(std::move(owned)), data(index), tables(query_running::make_tables(data)) {
    if (sqlite3_open_v2(":memory:", &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, nullptr) != SQLITE_OK) {
      throw Error(fmt::format("SQLite could not start: {}", sqlite3_errmsg(database)));
    }
    for (const auto& table : tables) add_table(database, *table);
    add_functions(database, data);
    sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    // A name in double quotes that is no column is an error, not a text.
    sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
    sqlite3_limit(database, SQLITE_LIMIT_ATTACHED, 0);
    declare_tables();
    sqlite3_set_authorizer(database, query_running::authorize, nullptr);
  }
  ~State() { sqlite3_close(database); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // A table's first use declares it, by a CREATE TABLE of its own, which the authorizer would refuse.
  void declare_tables() {
    for (const auto& table : tables) {
      const std::string sql = fmt::format("SELECT * FROM \"{}\"", table->name());
      sqlite3_stmt* statement = nullptr;
      if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
        throw Error(fmt::format("SQLite could not declare the table {}: {}", table->name(), sqlite3_errmsg(database)));
      }
      sqlite3_finalize(statement);
    }
  }

  // The line and column of a place in the text, from 1.
  static std::string place(std::string_view sql, std::size_t offset) {
    const std::string_view before = sql.substr(0, std::min(offset, sql.size()));
    const auto lines = std::ranges::count(before, '\n');
    const std::size_t begin = before.rfind('\n') + 1;  // 0 on the first line
    const auto column = std::ranges::count_if(before.substr(begin), [](char c) { return (c & 0xc0) != 0x80; });
    return fmt::format("line {}, column {}", lines + 1, column + 1);
  }

  // Columns, tables and functions: what SQLite did not find, and the nearest ones that there are.
  std::string remedy(const std::string& message) const {
    using namespace query_running;
    constexpr const char* schema = "paceline query --schema lists tables, columns and functions";
    std::string wanted;
    std::vector<std::string> names;
    if (const std::string column = after(message, "no such column: "); !column.empty()) {
      wanted = column.substr(column.rfind('.') + 1);
      std::map<std::string, std::vector<std::string>> tables_of;
      for (const auto& table : tables) {
        for (const QueryColumn& of : table->columns()) tables_of[of.name].push_back(table->name());
      }
      for (const auto& [name, of] : tables_of) names.push_back(name);
      std::vector<std::string> texts;
      for (const std::string& name : near(wanted, names)) {
        texts.push_back(fmt::format("{} (of {})", name, list_text(tables_of[name])));
      }
      return texts.empty() ? fmt::format("{}; text is written in single quotes", schema) : near_text(texts);
    }
    if (wanted = after(message, "no such table: "); !wanted.empty()) {
      for (const auto& table : tables) names.emplace_back(table->name());
      const auto nearest = near(wanted, names);
      return nearest.empty() ? "the tables are " + list_text(names) : near_text(nearest);
    }
    if (wanted = after(message, "no such function: "); !wanted.empty()) {
      for (const QueryFunction& of : query_functions()) {
        names.push_back(std::string(of.call).substr(0, std::string_view(of.call).find('(')));
      }
      const auto nearest = near(wanted, names);
      return nearest.empty() ? schema : near_text(nearest);
    }
    return schema;
  }

  [[noreturn]] void fail(std::string_view sql, std::size_t offset, int code) const {
    std::string message = sqlite3_errmsg(database);
    if (data.interrupted || code == SQLITE_INTERRUPT) throw Error("interrupted");
    // With an authorizer, SQLite gives the place of a denied statement nowhere.
    if (code == SQLITE_AUTH || message == "not authorized") {
      throw Error("the SQL changes something: traces are only read, so write a SELECT");
    }
    int at = sqlite3_error_offset(database);
    // SQLite does not give the place of a table.
    const std::string table = query_running::after(message, "no such table: ");
    if (at < 0 && !table.empty()) at = static_cast<int>(static_cast<std::ptrdiff_t>(sql.find(table)));
    std::ranges::replace(message, '\n', ' ');
    const std::string where = at < 0 ? std::string("the SQL") : place(sql, offset + static_cast<std::size_t>(at));
    throw Error(fmt::format("{}: {}; {}", where, message, remedy(message)));
  }

  std::unique_ptr<const RunIndex> own_index;
  RunData data;
  std::vector<std::unique_ptr<QueryTable>> tables;
  sqlite3* database = nullptr;
};

QueryRunner::QueryRunner(const RunIndex& index) : state_(std::make_unique<State>(index, nullptr)) {}
QueryRunner::QueryRunner(const Trace& trace) {
  auto index = std::make_unique<const RunIndex>(trace);
  state_ = std::make_unique<State>(*index, std::move(index));
}
QueryRunner::~QueryRunner() = default;

void QueryRunner::interrupt() {
  state_->data.interrupted = true;
  sqlite3_interrupt(state_->database);
}

bool QueryRunner::was_interrupted() const { return state_->data.interrupted; }

void QueryRunner::run(std::string_view sql, QuerySink& sink) {
  using namespace query_running;
  if (only_blanks(sql)) throw Error("the SQL is empty: write a SELECT; paceline query --schema lists the tables");
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  if (sql.size() > 1'000'000) throw Error("the SQL is longer than 1 MB");
  const int prepared = sqlite3_prepare_v2(state_->database, sql.data(), static_cast<int>(sql.size()), &raw, &rest);
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(raw, sqlite3_finalize);
  if (prepared != SQLITE_OK) state_->fail(sql, 0, prepared);
  if (raw == nullptr) throw Error("the SQL is only a comment: write a SELECT");
  sqlite3_stmt* further = nullptr;
  const auto used = static_cast<std::size_t>(rest - sql.data());
  const std::string_view more = sql.substr(used);
  if (const int failed =
          sqlite3_prepare_v2(state_->database, more.data(), static_cast<int>(more.size()), &further, nullptr);
      failed != SQLITE_OK || further != nullptr) {
    sqlite3_finalize(further);
    const std::size_t begin = used + std::min(more.find_first_not_of(" \t\r\n;"), more.size());
    throw Error(fmt::format("{}: a second statement begins: give one statement at a time", State::place(sql, begin)));
  }

  const int count = sqlite3_column_count(raw);
  std::vector<std::string> columns;
  for (int c = 0; c < count; ++c) columns.emplace_back(sqlite3_column_name(raw, c));
  std::vector<QueryValue> values(static_cast<std::size_t>(count));
  const auto bytes = [&](int c, const void* data) {
    return std::string_view(static_cast<const char*>(data), static_cast<std::size_t>(sqlite3_column_bytes(raw, c)));
  };
  sink.begin(std::move(columns));
  int step = SQLITE_ROW;
  while ((step = sqlite3_step(raw)) == SQLITE_ROW) {
    for (int c = 0; c < count; ++c) {
      QueryValue& value = values[static_cast<std::size_t>(c)];
      switch (sqlite3_column_type(raw, c)) {
        case SQLITE_INTEGER:
          value = static_cast<std::int64_t>(sqlite3_column_int64(raw, c));
          break;
        case SQLITE_FLOAT:
          value = sqlite3_column_double(raw, c);
          break;
        case SQLITE_TEXT:
          value = bytes(c, sqlite3_column_text(raw, c));
          break;
        case SQLITE_BLOB:
          value = QueryBytes{bytes(c, sqlite3_column_blob(raw, c))};
          break;
        default:
          value = std::monostate{};
      }
    }
    sink.row(values);
    state_->data.check_interruption();
  }
  if (step != SQLITE_DONE) state_->fail(sql, 0, step);
  sink.end();
}

std::string query_schema_text() {
  const Trace none;
  const RunIndex index(none);
  RunData data(index);
  std::string text = "Times are nanoseconds since the run's zero.\n";
  for (const auto& table : query_running::make_tables(data)) {
    text += fmt::format("\n{}: {}\n", table->name(), table->meaning());
    for (const QueryColumn& column : table->columns()) {
      text += fmt::format("  {:<17} {:<8} {:<7} {}\n", column.name, column.type, column.unit, column.meaning);
    }
  }
  text += "\nfunctions, beside SQLite's own\n";
  for (const QueryFunction& of : query_functions()) text += fmt::format("  {:<18} {}\n", of.call, of.meaning);
  return text;
}

}  // namespace paceline::analysis
