// SPDX-License-Identifier: Apache-2.0
// Random queries give the same rows on the virtual tables as on ordinary tables of SQLite with the same contents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>

#include "analysis/trace/builder.h"
#include "analysis/trace/slice_id.h"
#include "tests/unit/analysis/query_rows.h"

namespace paceline::analysis {
namespace {

using Random = std::mt19937;

int below(Random& random, int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); }
bool sometimes(Random& random, int one_in) { return below(random, one_in) == 0; }
template <class Item>
const Item& one_of(Random& random, const std::vector<Item>& items) {
  return items[random() % items.size()];
}

// Nested slices between the two times.
void add_slices(TrackBuilder& track, Random& random, std::int64_t from, std::int64_t to, int depth) {
  static const std::vector<std::string> names = {"forward", "backward", "MPI_Test", "gemm", "Layer_1", "layer%1", ""};
  static const std::vector<std::string> domains = {"train", "mpi", "cuda", ""};
  static const std::vector<std::string> categories = {"kernel", "wait", ""};
  std::int64_t at = from;
  while (at < to) {
    at += below(random, 40);
    const std::int64_t end = std::min<std::int64_t>(to, at + below(random, 200));
    if (at >= end) continue;
    track.push(at, one_of(random, names), one_of(random, domains), one_of(random, categories));
    if (sometimes(random, 2)) track.argument("bytes", below(random, 5));
    if (sometimes(random, 4)) track.text_argument("communicator", one_of(random, names));
    if (depth < 4) add_slices(track, random, at + below(random, 5), end - below(random, 5), depth + 1);
    track.pop(end);
    at = end;
  }
}

Trace random_trace(unsigned seed) {
  Random random(seed);
  TraceBuilder run;
  for (int r = 0; r < 4; ++r) {
    RankBuilder& rank = run.add_rank(r == 3 ? 7 : r, 4);
    for (int t = 0; t < 3; ++t) {
      TrackBuilder& track =
          t == 0 ? rank.add_main_thread() : rank.add_track(TrackKind::stream, "s" + std::to_string(t));
      add_slices(track, random, below(random, 100), 600 + below(random, 400), 0);
      for (int i = 0; i < 6; ++i) track.add_mark(below(random, 1000), i % 2 == 0 ? "mark" : "gemm", "train");
    }
    TrackBuilder& power = rank.add_counter("power", "W", "GPU 0", false);
    TrackBuilder& sent = rank.add_counter("sent", "bytes", "eth0", true);
    for (int i = 0; i < 20; ++i) power.add_sample(i * 50, below(random, 9));
    for (int i = 0; i < 20; ++i) sent.add_sample(i * 50 + 3, i * 7.5);
  }
  return run.finish();
}

// Ordinary tables with the contents of the virtual ones.
class OrdinaryTables {
 public:
  explicit OrdinaryTables(const Trace& trace) : trace_(trace) {
    sqlite3_open(":memory:", &database_);
    add_events();
    QueryRunner runner(trace);
    for (const char* table : {"ranks", "tracks", "kinds", "counters", "arguments"}) copy(runner, table);
  }
  ~OrdinaryTables() { sqlite3_close(database_); }
  OrdinaryTables(const OrdinaryTables&) = delete;
  OrdinaryTables& operator=(const OrdinaryTables&) = delete;

  std::vector<QueryRow> rows(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr), SQLITE_OK)
        << sql << "\n"
        << sqlite3_errmsg(database_);
    std::vector<QueryRow> rows;
    while (statement != nullptr && sqlite3_step(statement) == SQLITE_ROW) {
      QueryRow row;
      for (int c = 0; c < sqlite3_column_count(statement); ++c) {
        const int type = sqlite3_column_type(statement, c);
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, c));
        if (type == SQLITE_FLOAT) {
          row.push_back(fmt::format("{:.12e}", sqlite3_column_double(statement, c)));
        } else {
          row.push_back(type == SQLITE_NULL ? "NULL" : type == SQLITE_TEXT ? fmt::format("'{}'", text) : text);
        }
      }
      rows.push_back(std::move(row));
    }
    sqlite3_finalize(statement);
    return rows;
  }

 private:
  void run(const std::string& sql) {
    ASSERT_EQ(sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sql << "\n"
                                                                                          << sqlite3_errmsg(database_);
  }
  static std::string quoted(const std::string& text) { return "'" + text + "'"; }

  // Straight from the columns, with parents and own times computed another way.
  void add_events() {
    run("CREATE TABLE slices(id INTEGER, rank INTEGER, track INTEGER, start_ns INTEGER, end_ns INTEGER, "
        "duration_ns INTEGER, depth INTEGER, kind INTEGER, name TEXT, domain TEXT, category TEXT, parent INTEGER, "
        "self_ns INTEGER)");
    run("CREATE TABLE marks(id INTEGER, rank INTEGER, track INTEGER, time_ns INTEGER, kind INTEGER, name TEXT, "
        "domain TEXT, category TEXT)");
    TrackNumber number = 0;
    for (const Rank& rank : trace_.ranks) {
      for (const Track& track : rank.tracks) {
        add_slices_of(rank, track.slices, number);
        for (std::uint32_t i = 0; i < track.marks.size(); ++i) {
          run(fmt::format("INSERT INTO marks VALUES({}, {}, {}, {}, {})", mark_id(number, i), rank.rank, number,
                          track.marks.start_ns[i], words(track.marks, i)));
        }
        ++number;
      }
    }
  }
  void add_slices_of(const Rank& rank, const Slices& slices, TrackNumber number) {
    std::vector<std::uint32_t> open;
    std::vector<std::optional<std::uint32_t>> parents(slices.size());
    std::vector<std::int64_t> own = slices.duration_ns;
    for (std::uint32_t i = 0; i < slices.size(); ++i) {
      open.resize(slices.depth[i]);
      if (!open.empty()) {
        parents[i] = open.back();
        own[open.back()] -= slices.duration_ns[i];
      }
      open.push_back(i);
    }
    for (std::uint32_t i = 0; i < slices.size(); ++i) {
      const std::string parent = parents[i] ? std::to_string(slice_id(number, *parents[i])) : "NULL";
      run(fmt::format("INSERT INTO slices VALUES({}, {}, {}, {}, {}, {}, {}, {}, {}, {})", slice_id(number, i),
                      rank.rank, number, slices.start_ns[i], slices.end_ns(i), slices.duration_ns[i], slices.depth[i],
                      words(slices, i), parent, own[i]));
    }
  }
  std::string words(const Slices& slices, std::size_t i) const {
    const Kind& kind = trace_.kind_of(slices, i);
    return fmt::format("{}, {}, {}, {}", slices.kind[i], quoted(trace_.names[kind.name]),
                       quoted(trace_.names[kind.domain]), quoted(trace_.names[kind.category]));
  }

  void copy(QueryRunner& runner, const std::string& table) {
    static const std::map<std::string, std::string> types = {
        {"name", "TEXT"},   {"domain", "TEXT"}, {"category", "TEXT"}, {"label", "TEXT"}, {"phase", "TEXT"},
        {"key", "TEXT"},    {"device", "TEXT"}, {"unit", "TEXT"},     {"host", "TEXT"},  {"command", "TEXT"},
        {"format", "TEXT"}, {"path", "TEXT"},   {"value", ""},        {"rate", "REAL"},  {"clock_error_ns", "REAL"}};
    CollectedRows all;
    runner.run("SELECT * FROM " + table, all);
    std::string columns;
    for (const std::string& column : all.columns) {
      const auto type = types.find(column);
      std::string of = type != types.end() ? type->second : "INTEGER";
      if (table == "tracks" && column == "kind") of = "TEXT";
      if (table == "counters" && column == "value") of = "REAL";
      columns += fmt::format("{}{} {}", columns.empty() ? "" : ", ", column, of);
    }
    run(fmt::format("CREATE TABLE {}({})", table, columns));
    for (const QueryRow& row : all.rows) {
      run(fmt::format("INSERT INTO {} VALUES({})", table, fmt::format("{}", fmt::join(row, ", "))));
    }
  }

  const Trace& trace_;
  sqlite3* database_ = nullptr;
};

// Makes queries from a small grammar.
class Grammar {
 public:
  explicit Grammar(unsigned seed) : random_(seed) {}

  struct Query {
    std::string sql;
    bool ordered = false;   // the order of the rows is decided
    bool by_first = false;  // that of the first column is
  };

  Query query() {
    switch (below(random_, 5)) {
      case 0:
        return grouped();
      case 1:
        return joined();
      default:
        return plain();
    }
  }

 private:
  static const std::vector<std::string>& numbers() {
    static const std::vector<std::string> of = {"rank", "track", "start_ns", "end_ns", "duration_ns", "depth", "kind"};
    return of;
  }
  static const std::vector<std::string>& texts() {
    static const std::vector<std::string> of = {"name", "domain", "category"};
    return of;
  }

  std::string number() {
    switch (below(random_, 12)) {
      case 0:
        return fmt::format("'{}'", below(random_, 10));
      case 1:
        return fmt::format("{}.5", below(random_, 900));
      case 2:
        return one_of<std::string>(random_, {"NULL", "1e19", "-1e19", "'x'", "-1", "9223372036854775807",
                                             "-9223372036854775808", "9.3e18", "'12.0'"});
      case 3:
      case 4:
        return fmt::format("{}", below(random_, 1000));
      default:
        return fmt::format("{}", below(random_, 9));
    }
  }
  std::string word() {
    return one_of<std::string>(random_, {"'forward'", "'MPI_Test'", "'gemm'", "'layer%1'", "'train'", "'mpi'", "''",
                                         "'kernel'", "'FORWARD'", "5", "NULL", "'mark'"});
  }

  std::string comparison(const std::string& prefix) {
    if (sometimes(random_, 3)) {
      const std::string column = prefix + one_of(random_, texts());
      switch (below(random_, 8)) {
        case 0:
          return fmt::format("{} LIKE {}", column,
                             one_of<std::string>(random_, {"'%r%'", "'mpi%'", "'LAYER_1'", "'layer%'", "NULL", "''"}));
        case 1:
          return fmt::format("{} GLOB {}", column, one_of<std::string>(random_, {"'[fb]*'", "'*_*'", "'L*'"}));
        case 2:
          return fmt::format("{} = {} COLLATE NOCASE", column, word());
        case 3:
          return fmt::format("{} IN ({}, {})", column, word(), word());
        case 4:
          return fmt::format("{} > {}", column, word());
        case 5:
          return fmt::format("{} <> {}", column, word());
        default:
          return fmt::format("{} = {}", column, word());
      }
    }
    const std::string column = prefix + one_of(random_, numbers());
    switch (below(random_, 8)) {
      case 0:
        return fmt::format("{} BETWEEN {} AND {}", column, number(), number());
      case 1:
        return fmt::format("{} IN ({}, {}, {})", column, number(), number(), number());
      case 2:
        return fmt::format("{} IS {}", column, number());
      case 3:
        return fmt::format(
            "{}id = {}", prefix,
            slice_id(static_cast<TrackNumber>(below(random_, 20)), static_cast<std::uint32_t>(below(random_, 30))));
      default:
        return fmt::format("{} {} {}", column, one_of<std::string>(random_, {"=", "<", "<=", ">", ">="}), number());
    }
  }
  std::string condition(const std::string& prefix) {
    std::string text = comparison(prefix);
    for (int more = below(random_, 4); more > 0; --more) {
      text += sometimes(random_, 4) ? " OR " : " AND ";
      text += sometimes(random_, 6) ? fmt::format("NOT ({})", comparison(prefix)) : comparison(prefix);
    }
    return text;
  }
  std::string where(const std::string& prefix) { return sometimes(random_, 8) ? "" : " WHERE " + condition(prefix); }

  Query plain() {
    static const std::vector<std::string> orders = {"id",
                                                    "rank, id",
                                                    "track, id",
                                                    "rank, track, id",
                                                    "name, id",
                                                    "start_ns, id",
                                                    "id DESC",
                                                    "duration_ns DESC, id",
                                                    "rank DESC, id",
                                                    "track, start_ns, id"};
    Query made;
    if (sometimes(random_, 5)) {
      made.sql = "SELECT start_ns, id, name, parent, self_ns FROM slices" + where("") + " ORDER BY start_ns";
      made.by_first = true;
      return made;
    }
    made.sql = "SELECT id, rank, track, start_ns, end_ns, depth, name, parent, self_ns FROM slices" + where("");
    if (sometimes(random_, 2)) {
      made.sql += " ORDER BY " + one_of(random_, orders);
      made.ordered = true;
      if (sometimes(random_, 2)) {
        made.sql += fmt::format(" LIMIT {}", below(random_, 20));
        if (sometimes(random_, 2)) made.sql += fmt::format(" OFFSET {}", below(random_, 9));
      }
    }
    return made;
  }

  Query grouped() {
    static const std::vector<std::string> by = {"kind",
                                                "name",
                                                "rank",
                                                "track",
                                                "rank, kind",
                                                "kind, rank",
                                                "name, rank",
                                                "domain, category",
                                                "track, name",
                                                "depth",
                                                "name, depth",
                                                "category, name, domain",
                                                "rank, track, start_ns"};
    const std::string columns = one_of(random_, by);
    if (sometimes(random_, 5)) return {"SELECT DISTINCT " + columns + " FROM slices" + where("")};
    Query made{"SELECT " + columns +
               ", count(*), sum(duration_ns), min(start_ns), max(end_ns), avg(depth) FROM slices" + where("") +
               " GROUP BY " + columns};
    if (sometimes(random_, 3)) made.sql += " HAVING count(*) > 2";
    if (sometimes(random_, 3)) {
      made.sql += " ORDER BY " + columns;
      made.ordered = true;
    }
    return made;
  }

  Query joined() {
    static const std::vector<std::string> tables = {
        "slices AS s JOIN tracks AS t USING (track)",
        "slices AS s JOIN ranks AS r ON r.rank = s.rank",
        "ranks AS r JOIN slices AS s USING (rank)",
        "slices AS s JOIN kinds AS k USING (kind)",
        "kinds AS k JOIN slices AS s ON s.name = k.name",
        "slices AS s LEFT JOIN slices AS p ON p.id = s.parent",
        "slices AS s JOIN slices AS p ON p.rank = s.rank AND p.start_ns < s.end_ns AND p.end_ns > s.start_ns",
        "marks AS m JOIN slices AS s ON s.track = m.track AND s.start_ns <= m.time_ns AND s.end_ns > m.time_ns",
        "slices AS s JOIN marks AS m ON m.kind = s.kind AND m.rank = s.rank",
        "slices AS s JOIN arguments AS a USING (id)",
        "arguments AS a JOIN slices AS s ON s.id = a.id AND a.key = 'bytes'",
        "slices AS s JOIN counters AS c ON c.rank = s.rank AND c.time_ns BETWEEN s.start_ns AND s.end_ns",
        "tracks AS t LEFT JOIN slices AS s ON s.track = t.track AND s.depth = 0"};
    return {"SELECT s.id, count(*), sum(s.duration_ns) FROM " + one_of(random_, tables) + where("s.") +
            " GROUP BY s.id"};
  }

  Random random_;
};

TEST(QueryDifferential, VirtualTablesGiveTheRowsOfOrdinaryTables) {
  std::size_t queries = 0, with_rows = 0;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    const Trace trace = random_trace(seed);
    OrdinaryTables ordinary(trace);
    QueryRunner runner(trace);
    Grammar grammar(seed);
    for (int i = 0; i < 150; ++i) {
      const Grammar::Query query = grammar.query();
      SCOPED_TRACE(fmt::format("seed {}: {}", seed, query.sql));
      std::vector<QueryRow> expected = ordinary.rows(query.sql), found;
      ASSERT_NO_THROW(found = rows_of(runner, query.sql));
      ++queries;
      with_rows += !expected.empty();
      if (query.by_first) {
        const auto firsts = [](const std::vector<QueryRow>& rows) {
          std::vector<std::string> of;
          for (const QueryRow& row : rows) of.push_back(row.front());
          return of;
        };
        ASSERT_EQ(firsts(found), firsts(expected));
      }
      if (!query.ordered) {
        std::ranges::sort(expected);
        std::ranges::sort(found);
      }
      ASSERT_EQ(found, expected);
    }
  }
  EXPECT_EQ(queries, 600U);
  EXPECT_GT(with_rows, 250U);  // else the queries ask for too little
}

TEST(QueryDifferential, RandomStatementsNeverBreakTheRunner) {
  const Trace trace = random_trace(9);
  QueryRunner runner(trace);
  Random random(9);
  const std::vector<std::string> words = {"SELECT", "*",     "FROM", "slices", "WHERE", "id",   "=",     "1",
                                          "(",      ")",     ",",    "GROUP",  "BY",    "rank", "ORDER", "name",
                                          "'x",     "'y'",   "JOIN", "ON",     "marks", "AND",  ";",     "--",
                                          "NULL",   "count", "WITH", "AS",     "UNION", "\"",   "\xff",  "argument"};
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    std::string sql;
    for (int w = below(random, 14); w >= 0; --w) sql += one_of(random, words) + " ";
    CollectedRows rows;
    try {
      runner.run(sql, rows);
    } catch (const std::exception& error) {
      ++refused;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << sql;
    }
  }
  EXPECT_GT(refused, 300);
  EXPECT_EQ(rows_of(runner, "SELECT count(*) FROM ranks"), (std::vector<QueryRow>{{"4"}}));
}

}  // namespace
}  // namespace paceline::analysis
