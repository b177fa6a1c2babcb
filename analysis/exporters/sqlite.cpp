// A SQLite database with the tables of `paceline query`, so the same SQL runs on it and the ids are equal. Slices and
// marks are in slice_rows and mark_rows without their texts; the views slices and marks have all columns. A slice that
// the selection clipped names the edge in `clipped`, a column that `paceline query` does not have.
//
// ranks, tracks and kinds describe the whole run. Iterations, collectives and messages that overlap the window are
// exported as the whole run has them, not clipped.
#include <fmt/ranges.h>
#include <sqlite3.h>

#include <memory>
#include <optional>

#include "analysis/exporters/exporter.h"
#include "analysis/exporters/text_output.h"
#include "analysis/query/argument_table.h"
#include "analysis/query/row_table.h"
#include "analysis/query/run_data.h"
#include "analysis/query/sample_table.h"

namespace paceline::analysis {
namespace sqlite_writer {

constexpr const char* schema = R"(
  CREATE TABLE file.slice_rows (id INTEGER PRIMARY KEY, rank INTEGER, track INTEGER, start_ns INTEGER, end_ns INTEGER,
                                duration_ns INTEGER, depth INTEGER, kind INTEGER, parent INTEGER, self_ns INTEGER,
                                clipped TEXT);
  CREATE TABLE file.mark_rows (id INTEGER PRIMARY KEY, rank INTEGER, track INTEGER, time_ns INTEGER, kind INTEGER);
  CREATE TABLE file.arguments (id INTEGER, key TEXT, value);
)";

constexpr const char* views_and_indexes = R"(
  CREATE VIEW file.slices AS
    SELECT id, rank, track, start_ns, end_ns, slice_rows.duration_ns, depth, kind, name, domain, category, parent,
           self_ns, clipped
    FROM slice_rows JOIN kinds USING (kind);
  CREATE VIEW file.marks AS
    SELECT id, rank, track, time_ns, kind, name, domain, category FROM mark_rows JOIN kinds USING (kind);
  CREATE UNIQUE INDEX file.kinds_by_kind ON kinds (kind);
  CREATE INDEX file.slices_by_kind ON slice_rows (kind);
  CREATE INDEX file.arguments_by_id ON arguments (id);
)";

class Statement {
 public:
  Statement(sqlite3* database, const std::string& sql) : database_(database) {
    if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK) fail();
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int place, std::int64_t value) {
    sqlite3_bind_int64(statement_, place, value);
    return *this;
  }
  Statement& bind(int place, double value) {
    sqlite3_bind_double(statement_, place, value);
    return *this;
  }
  // The text must stay until run().
  Statement& bind(int place, std::string_view text) {
    sqlite3_bind_text64(statement_, place, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    return *this;
  }
  Statement& bind_nothing(int place) {
    sqlite3_bind_null(statement_, place);
    return *this;
  }
  // Runs it to its end, and makes it ready for other values.
  void run() {
    while (sqlite3_step(statement_) == SQLITE_ROW) continue;
    if (sqlite3_reset(statement_) != SQLITE_OK) fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(fmt::format("the export could not be written: {}", sqlite3_errmsg(database_)));
  }
  sqlite3* database_;
  sqlite3_stmt* statement_ = nullptr;
};

// The SQL function valid_utf8(text).
void clean(sqlite3_context* context, int, sqlite3_value** values) {
  if (sqlite3_value_type(values[0]) == SQLITE_NULL) return;
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values[0]));
  const std::string valid = valid_utf8({text, static_cast<std::size_t>(sqlite3_value_bytes(values[0]))});
  sqlite3_result_text64(context, valid.data(), valid.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

class SqliteWriter {
 public:
  SqliteWriter(const ExportJob& job, const std::filesystem::path& path)
      : job_(job), data_(job.trace()), texts_(job.trace()) {
    if (sqlite3_open(":memory:", &database_) != SQLITE_OK) throw Error("SQLite could not start");
    sqlite3_create_function(database_, "valid_utf8", 1, SQLITE_UTF8, nullptr, clean, nullptr, nullptr);
    // An export that fails is removed, so no journal is needed.
    Statement(database_, "ATTACH ? AS file").bind(1, path.string()).run();
    run("PRAGMA file.journal_mode = OFF; PRAGMA file.synchronous = OFF; PRAGMA file.locking_mode = EXCLUSIVE;");
  }
  ~SqliteWriter() {
    insert_slice_.reset(), insert_mark_.reset(), insert_argument_.reset();
    sqlite3_close(database_);
  }
  SqliteWriter(const SqliteWriter&) = delete;
  SqliteWriter& operator=(const SqliteWriter&) = delete;

  void write() {
    run("BEGIN");
    run(schema);
    insert_slice_.emplace(database_, "INSERT INTO file.slice_rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    insert_mark_.emplace(database_, "INSERT INTO file.mark_rows VALUES (?, ?, ?, ?, ?)");
    insert_argument_.emplace(database_, "INSERT INTO file.arguments VALUES (?, ?, ?)");
    const std::string of_ranks = ranks("rank"), in_window = "start_ns < ?1 AND (end_ns > ?2 OR start_ns >= ?2)";
    copy(*ranks_table(data_), of_ranks);
    copy(*tracks_table(data_), of_ranks);
    copy(*kinds_table(data_), "1");
    copy(*iterations_table(data_), of_ranks + " AND " + in_window);
    copy(*collectives_table(data_), of_ranks + " AND " + in_window);
    copy(*messages_table(data_),
         fmt::format("({} OR {}) AND coalesce(send_start_ns, receive_start_ns) < ?1 AND "
                     "coalesce(receive_end_ns, send_end_ns, receive_start_ns, send_start_ns) >= ?2",
                     ranks("sender"), ranks("receiver")));
    SampleTable counters(data_);
    copy(counters, counter_condition());
    for (const Rank* rank : job_.ranks()) {
      for (const Track& track : rank->tracks) {
        const auto number = job_.first_track(*rank) + static_cast<TrackNumber>(&track - rank->tracks.data());
        slices(*rank, track.slices, number);
        marks(*rank, track.marks, number);
      }
    }
    run(views_and_indexes);
    run("COMMIT");
    insert_slice_.reset(), insert_mark_.reset(), insert_argument_.reset();
    run("DETACH file");
  }

 private:
  void run(const char* sql) {
    if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
      throw Error(fmt::format("the export could not be written: {}", sqlite3_errmsg(database_)));
    }
  }

  // A condition: the column is the number of a rank that is exported.
  std::string ranks(std::string_view column) const {
    std::vector<int> numbers;
    for (const Rank* rank : job_.ranks()) numbers.push_back(rank->rank);
    return fmt::format("{} IN ({})", column, fmt::join(numbers, ", "));
  }

  // The samples that the selection takes, counter by counter.
  std::string counter_condition() const {
    std::string condition = "0";
    for (const Rank* rank : job_.ranks()) {
      for (const Track& track : rank->tracks) {
        const auto& times = track.samples.time_ns;
        const auto [first, last] = job_.selection().samples(times);
        if (first == last) continue;
        condition += fmt::format(" OR (track = {} AND time_ns BETWEEN {} AND {})",
                                 job_.first_track(*rank) + static_cast<TrackNumber>(&track - rank->tracks.data()),
                                 times[first], times[last - 1]);
      }
    }
    return condition;
  }

  // The rows of a table of `paceline query` for which the condition holds; in it ?1 is the window's end, ?2 its start.
  void copy(QueryTable& table, const std::string& condition) {
    add_table(database_, table);
    std::string columns, values;
    for (const QueryColumn& column : table.columns()) {
      const bool text = std::string_view(column.type) == "TEXT";
      columns += fmt::format("{}{} {}", columns.empty() ? "" : ", ", column.name, column.type);
      values += fmt::format("{}{}", values.empty() ? "" : ", ",
                            text ? fmt::format("valid_utf8({})", column.name) : column.name);
    }
    run(fmt::format("CREATE TABLE file.{} ({})", table.name(), columns).c_str());
    Statement(database_,
              fmt::format("INSERT INTO file.{0} SELECT {1} FROM main.{0} WHERE {2}", table.name(), values, condition))
        .bind(1, job_.selection().window().until_ns)
        .bind(2, job_.selection().window().from_ns)
        .run();
  }

  struct Open {
    SelectedSlice slice;
    std::int64_t self_ns = 0;
  };

  // A row is written when its slice ends, because its own time is known then.
  void slices(const Rank& rank, const Slices& slices, TrackNumber track) {
    open_.clear();
    job_.each(slices, [&](const SelectedSlice& slice) {
      while (!open_.empty() && open_.back().slice.end_ns() <= slice.start_ns) close(rank, slices, track);
      if (!open_.empty()) open_.back().self_ns -= slice.duration_ns;
      open_.push_back({slice, slice.duration_ns});
    });
    while (!open_.empty()) close(rank, slices, track);
  }

  void close(const Rank& rank, const Slices& slices, TrackNumber track) {
    const auto [slice, self_ns] = open_.back();
    open_.pop_back();
    const std::int64_t id = slice_id(track, slice.index);
    insert_slice_->bind(1, id)
        .bind(2, std::int64_t{rank.rank})
        .bind(3, std::int64_t{track})
        .bind(4, slice.start_ns)
        .bind(5, slice.end_ns())
        .bind(6, slice.duration_ns)
        .bind(7, std::int64_t{slices.depth[slice.index]})
        .bind(8, std::int64_t{slices.kind[slice.index]});
    if (open_.empty()) {
      insert_slice_->bind_nothing(9);
    } else {
      insert_slice_->bind(9, slice_id(track, open_.back().slice.index));
    }
    insert_slice_->bind(10, self_ns);
    if (slice.clipped == Clipped::no) {
      insert_slice_->bind_nothing(11);
    } else {
      insert_slice_->bind(11, clipped_text(slice.clipped));
    }
    insert_slice_->run();
    arguments(slices, slice.index, id);
  }

  void marks(const Rank& rank, const Slices& marks, TrackNumber track) {
    job_.each(marks, [&](const SelectedSlice& mark) {
      const std::int64_t id = mark_id(track, mark.index);
      insert_mark_->bind(1, id)
          .bind(2, std::int64_t{rank.rank})
          .bind(3, std::int64_t{track})
          .bind(4, mark.start_ns)
          .bind(5, std::int64_t{marks.kind[mark.index]})
          .run();
      arguments(marks, mark.index, id);
    });
  }

  void arguments(const Slices& of, std::uint32_t index, std::int64_t id) {
    of.each_argument(index, [&](const Argument& argument) {
      insert_argument_->bind(1, id).bind(2, texts_[argument.key]);
      std::string digits;
      if (argument.is_text()) {
        insert_argument_->bind(3, texts_[argument.text()]);
      } else if (argument.type == ValueType::real) {
        insert_argument_->bind(3, argument.number());
      } else if (argument.type == ValueType::signed_integer || argument.bits >> 63 == 0) {
        insert_argument_->bind(3, static_cast<std::int64_t>(argument.bits));
      } else {  // SQLite has no such integers
        digits = std::to_string(argument.bits);
        insert_argument_->bind(3, digits);
      }
      insert_argument_->run();
    });
  }

  const ExportJob& job_;
  RunData data_;
  CleanNames texts_;
  sqlite3* database_ = nullptr;
  std::vector<Open> open_;  // the slices around the present one
  std::optional<Statement> insert_slice_, insert_mark_, insert_argument_;
};

}  // namespace sqlite_writer

constexpr Exporter sqlite_exporter{.name = "sqlite",
                                   .what = "a SQLite database with the tables of paceline query",
                                   .target = Exporter::Target::file,
                                   .write = nullptr,
                                   .make = [](const ExportJob& job, const std::filesystem::path& path) {
                                     sqlite_writer::SqliteWriter(job, path).write();
                                   }};

}  // namespace paceline::analysis
