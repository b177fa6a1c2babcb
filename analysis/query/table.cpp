// SPDX-License-Identifier: Apache-2.0
#include "analysis/query/table.h"

#include <fmt/format.h>

#include <exception>
#include <new>

#include "profiler/format/error.h"

namespace paceline::analysis {
namespace sqlite_tables {

constexpr char first_column = '0';  // of the characters that stand for columns

Operator operator_of(unsigned char op) {
  switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
      return Operator::equal;
    case SQLITE_INDEX_CONSTRAINT_LT:
      return Operator::less;
    case SQLITE_INDEX_CONSTRAINT_LE:
      return Operator::at_most;
    case SQLITE_INDEX_CONSTRAINT_GT:
      return Operator::greater;
    case SQLITE_INDEX_CONSTRAINT_GE:
      return Operator::at_least;
    case SQLITE_INDEX_CONSTRAINT_LIKE:
      return Operator::like;
    case SQLITE_INDEX_CONSTRAINT_GLOB:
      return Operator::glob;
    default:
      return Operator::none;
  }
}

struct OpenTable : sqlite3_vtab {
  QueryTable* table = nullptr;
};

struct OpenCursor : sqlite3_vtab_cursor {
  std::unique_ptr<QueryCursor> cursor;
};

QueryCursor& cursor_of(sqlite3_vtab_cursor* cursor) { return *static_cast<OpenCursor*>(cursor)->cursor; }

// Runs `work`; an exception becomes the table's error.
template <class Work>
int guarded(sqlite3_vtab* table, Work&& work) {
  try {
    work();
    return SQLITE_OK;
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  } catch (const std::exception& error) {
    sqlite3_free(table->zErrMsg);
    table->zErrMsg = sqlite3_mprintf("%s", error.what());
    return SQLITE_ERROR;
  }
}

int connect(sqlite3* database, void* given, int, const char* const*, sqlite3_vtab** made, char** message) {
  auto& table = *static_cast<QueryTable*>(given);
  std::string declaration = "CREATE TABLE t(";
  const char* separator = "";
  for (const QueryColumn& column : table.columns()) {
    declaration += fmt::format("{}\"{}\" {}", separator, column.name, column.type);
    separator = ", ";
  }
  if (const int failed = sqlite3_declare_vtab(database, (declaration + ")").c_str())) {
    *message = sqlite3_mprintf("%s", sqlite3_errmsg(database));
    return failed;
  }
  auto* open = new (std::nothrow) OpenTable;
  if (open == nullptr) return SQLITE_NOMEM;
  open->table = &table;
  *made = open;
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  delete static_cast<OpenTable*>(table);
  return SQLITE_OK;
}

int best_index(sqlite3_vtab* table, sqlite3_index_info* info) {
  return guarded(table, [&] {
    QueryPlan plan(*info);
    static_cast<OpenTable*>(table)->table->plan(plan);
    info->idxStr = sqlite3_mprintf("%s", plan.taken().c_str());
    info->needToFreeIdxStr = 1;
    if (info->idxStr == nullptr) throw std::bad_alloc();
  });
}

int open(sqlite3_vtab* table, sqlite3_vtab_cursor** made) {
  return guarded(table, [&] {
    auto cursor = std::make_unique<OpenCursor>();
    cursor->cursor = static_cast<OpenTable*>(table)->table->open();
    *made = cursor.release();
  });
}

int close(sqlite3_vtab_cursor* cursor) {
  delete static_cast<OpenCursor*>(cursor);
  return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor* cursor, int mode, const char* taken, int count, sqlite3_value** values) {
  return guarded(cursor->pVtab, [&] {
    std::vector<Condition> conditions;
    for (int i = 0; i < count; ++i) {
      conditions.push_back({taken[2 * i] - first_column, static_cast<Operator>(taken[2 * i + 1]), values[i]});
    }
    cursor_of(cursor).filter(mode, conditions);
  });
}

int next(sqlite3_vtab_cursor* cursor) {
  return guarded(cursor->pVtab, [&] { cursor_of(cursor).next(); });
}

int eof(sqlite3_vtab_cursor* cursor) { return cursor_of(cursor).at_end() ? 1 : 0; }

int column(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int number) {
  return guarded(cursor->pVtab, [&] { cursor_of(cursor).column(context, number); });
}

int row_id(sqlite3_vtab_cursor* cursor, sqlite3_int64* id) {
  *id = cursor_of(cursor).row_id();
  return SQLITE_OK;
}

// Without xCreate, so that a table exists by its name alone.
const sqlite3_module module = [] {
  sqlite3_module made{};
  made.xConnect = connect;
  made.xDisconnect = disconnect;
  made.xDestroy = disconnect;
  made.xBestIndex = best_index;
  made.xOpen = open;
  made.xClose = close;
  made.xFilter = filter;
  made.xNext = next;
  made.xEof = eof;
  made.xColumn = column;
  made.xRowid = row_id;
  return made;
}();

}  // namespace sqlite_tables

std::vector<QueryPlan::Offer> QueryPlan::offers() const {
  std::vector<Offer> offers;
  for (int i = 0; i < info_.nConstraint; ++i) {
    const auto& constraint = info_.aConstraint[i];
    const Operator comparison = sqlite_tables::operator_of(constraint.op);
    if (constraint.usable == 0 || comparison == Operator::none) continue;
    offers.push_back(
        {i, constraint.iColumn, comparison, std::string_view(sqlite3_vtab_collation(&info_, i)) == "BINARY"});
  }
  return offers;
}

void QueryPlan::take(const Offer& offer, bool exact) {
  taken_ += static_cast<char>(sqlite_tables::first_column + offer.column);
  taken_ += static_cast<char>(offer.comparison);
  auto& usage = info_.aConstraintUsage[offer.index];
  usage.argvIndex = static_cast<int>(taken_.size() / 2);
  usage.omit = exact ? 1 : 0;
}

std::vector<QueryPlan::OrderTerm> QueryPlan::order() const {
  std::vector<OrderTerm> terms;
  for (int i = 0; i < info_.nOrderBy; ++i) terms.push_back({info_.aOrderBy[i].iColumn, info_.aOrderBy[i].desc != 0});
  return terms;
}

void QueryPlan::estimate(double rows, double cost, bool unique) {
  info_.estimatedRows = static_cast<sqlite3_int64>(rows < 1 ? 1 : rows);
  info_.estimatedCost = cost;
  if (unique) info_.idxFlags |= SQLITE_INDEX_SCAN_UNIQUE;
}

void add_table(sqlite3* database, QueryTable& table) {
  if (sqlite3_create_module(database, table.name(), &sqlite_tables::module, &table) == SQLITE_OK) return;
  throw Error(fmt::format("the table {} could not be made: {}", table.name(), sqlite3_errmsg(database)));
}

}  // namespace paceline::analysis
