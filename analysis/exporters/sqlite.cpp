// SPDX-License-Identifier: Apache-2.0
// A SQLite database with the tables of `paceline query`, so the same SQL runs on it and the ids are equal. Slices and
// marks are in slice_rows and mark_rows without their texts and arguments; the views slices, marks and arguments have
// all columns. Slices with equal arguments share the rows of one set. A slice that the selection clipped names the edge
// in `clipped`, a column that `paceline query` does not have.
//
// ranks, tracks and kinds describe the whole run. Iterations, collectives and messages that overlap the window are
// exported as the whole run has them, not clipped.
#include <fmt/ranges.h>
#include <sqlite3.h>

#include <optional>
#include <unordered_map>

#include "analysis/exporters/exporter.h"
#include "analysis/exporters/json_arguments.h"
#include "analysis/query/run_data.h"
#include "analysis/query/table.h"
#include "analysis/text/text_output.h"

namespace paceline::analysis {
namespace sqlite_writer {

constexpr const char* schema = R"(
  CREATE TABLE file.slice_rows (id INTEGER PRIMARY KEY, rank INTEGER, track INTEGER, start_ns INTEGER, end_ns INTEGER,
                                duration_ns INTEGER, depth INTEGER, kind INTEGER, parent INTEGER, self_ns INTEGER,
                                clipped TEXT, arguments INTEGER);
  CREATE TABLE file.mark_rows (id INTEGER PRIMARY KEY, rank INTEGER, track INTEGER, time_ns INTEGER, kind INTEGER,
                               arguments INTEGER);
  CREATE TABLE file.argument_rows (arguments INTEGER, place INTEGER, key TEXT, value,
                                   PRIMARY KEY (arguments, place)) WITHOUT ROWID;
)";

constexpr const char* views_and_indexes = R"(
  CREATE VIEW file.slices AS
    SELECT id, rank, track, start_ns, end_ns, slice_rows.duration_ns, depth, kind, name, domain, category, parent,
           self_ns, clipped
    FROM slice_rows JOIN kinds USING (kind);
  CREATE VIEW file.marks AS
    SELECT id, rank, track, time_ns, kind, name, domain, category FROM mark_rows JOIN kinds USING (kind);
  CREATE VIEW file.arguments AS
    SELECT id, key, value FROM slice_rows JOIN argument_rows USING (arguments)
    UNION ALL SELECT id, key, value FROM mark_rows JOIN argument_rows USING (arguments);
  CREATE UNIQUE INDEX file.kinds_by_kind ON kinds (kind);
  CREATE INDEX file.slices_by_kind ON slice_rows (kind);
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
      : job_(job), index_(job.trace()), data_(index_), texts_(job.trace()) {
    constexpr int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(":memory:", &database_, flags, nullptr) != SQLITE_OK) throw Error("SQLite could not start");
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
    insert_slice_.emplace(database_, "INSERT INTO file.slice_rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    insert_mark_.emplace(database_, "INSERT INTO file.mark_rows VALUES (?, ?, ?, ?, ?, ?)");
    insert_argument_.emplace(database_, "INSERT INTO file.argument_rows VALUES (?, ?, ?, ?)");
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
    copy(*counters_table(data_), counter_condition());
    copy(*stack_samples_table(data_), of_ranks + " AND time_ns < ?1 AND time_ns >= ?2");
    copy(*frames_table(data_), "1");
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
    std::size_t number = 0;  // of the slice among the track's selected ones
  };

  // Keeps in open_ what the time is in.
  void leave_before(std::int64_t time_ns) {
    while (!open_.empty() && open_.back().slice.end_ns() <= time_ns) open_.pop_back();
  }

  // Rows come in the order of their ids, which is the fastest for SQLite. So the own times are computed before.
  void compute_self_times(const Slices& slices) {
    self_ns_.clear(), open_.clear();
    for (std::uint32_t i = 0; i < job_.selection().end_of(slices); ++i) {
      const auto slice = job_.selection().slice(slices, i);
      if (!slice) continue;
      leave_before(slice->start_ns);
      if (!open_.empty()) self_ns_[open_.back().number] -= slice->duration_ns;
      open_.push_back({*slice, self_ns_.size()});
      self_ns_.push_back(slice->duration_ns);
    }
    open_.clear();
  }

  void slices(const Rank& rank, const Slices& slices, TrackNumber track) {
    compute_self_times(slices);
    std::size_t number = 0;
    sets_.clear();
    insert_slice_->bind(2, std::int64_t{rank.rank}).bind(3, std::int64_t{track});
    job_.each(slices, [&](const SelectedSlice& slice) {
      leave_before(slice.start_ns);
      insert_slice_->bind(1, slice_id(track, slice.index))
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
      insert_slice_->bind(10, self_ns_[number]);
      if (slice.clipped == Clipped::no) {
        insert_slice_->bind_nothing(11);
      } else {
        insert_slice_->bind(11, clipped_text(slice.clipped));
      }
      bind_arguments(*insert_slice_, 12, slices, slice.index);
      insert_slice_->run();
      open_.push_back({slice, number++});
    });
    open_.clear();
  }

  void marks(const Rank& rank, const Slices& marks, TrackNumber track) {
    sets_.clear();
    job_.each(marks, [&](const SelectedSlice& mark) {
      insert_mark_->bind(1, mark_id(track, mark.index))
          .bind(2, std::int64_t{rank.rank})
          .bind(3, std::int64_t{track})
          .bind(4, mark.start_ns)
          .bind(5, std::int64_t{marks.kind[mark.index]});
      bind_arguments(*insert_mark_, 6, marks, mark.index);
      insert_mark_->run();
    });
  }

  // Binds the number of the slice's set of arguments, and writes the set where it is a new one.
  void bind_arguments(Statement& statement, int place, const Slices& of, std::uint32_t index) {
    const RecordId record = of.record[index];
    if (record == 0) {
      statement.bind_nothing(place);
    } else if (!Records::is_shared(record)) {
      statement.bind(place, ++last_set_);
      arguments(of, index, last_set_);
    } else {
      const auto [set, fresh] = sets_.try_emplace(record, last_set_ + 1);
      if (fresh) arguments(of, index, ++last_set_);
      statement.bind(place, set->second);
    }
  }

  void arguments(const Slices& of, std::uint32_t index, std::int64_t set) {
    std::int64_t place = 0;
    of.each_argument(index, [&](const Argument& argument) {
      insert_argument_->bind(1, set).bind(2, place++).bind(3, texts_[argument.key]);
      std::string digits;
      if (argument.is_text()) {
        insert_argument_->bind(4, texts_[argument.text()]);
      } else if (argument.type == ValueType::real) {
        insert_argument_->bind(4, argument.number());
      } else if (argument.type == ValueType::signed_integer || argument.bits >> 63 == 0) {
        insert_argument_->bind(4, static_cast<std::int64_t>(argument.bits));
      } else {  // SQLite has no such integers
        digits = std::to_string(argument.bits);
        insert_argument_->bind(4, digits);
      }
      insert_argument_->run();
    });
  }

  const ExportJob& job_;
  const RunIndex index_;
  RunData data_;
  CleanNames texts_;
  sqlite3* database_ = nullptr;
  std::vector<Open> open_;                           // the slices around the present one
  std::vector<std::int64_t> self_ns_;                // by the number of a slice among the track's selected ones
  std::unordered_map<RecordId, std::int64_t> sets_;  // the sets of arguments that the track has written
  std::int64_t last_set_ = 0;
  std::optional<Statement> insert_slice_, insert_mark_, insert_argument_;
};

}  // namespace sqlite_writer

constexpr Exporter sqlite_exporter{.name = "sqlite",
                                   .what = "a SQLite database with the tables of paceline query",
                                   .target = Exporter::Target::file,
                                   .make = [](const ExportJob& job, const std::filesystem::path& path) {
                                     sqlite_writer::SqliteWriter(job, path).write();
                                   }};

}  // namespace paceline::analysis
