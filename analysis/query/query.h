// SPDX-License-Identifier: Apache-2.0
// SQL over a run: SQLite with the tables of this folder, which only reads.
//
//   QueryRunner runner(trace);
//   runner.run("SELECT name, count(*) FROM slices GROUP BY name", sink);
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analysis/run/index/run_index.h"

namespace paceline::analysis {

struct QueryBytes {  // of a BLOB
  std::string_view bytes;
};
// A value of a row; texts and bytes are valid until the next row.
using QueryValue = std::variant<std::monostate, std::int64_t, double, std::string_view, QueryBytes>;

// Receives the result of a statement.
class QuerySink {
 public:
  virtual ~QuerySink() = default;
  virtual void begin(std::vector<std::string> columns) = 0;
  virtual void row(std::span<const QueryValue> values) = 0;
  virtual void end() = 0;
};

class QueryRunner {
 public:
  // The index, or the trace where there is none, must outlive this. Throws Error.
  explicit QueryRunner(const RunIndex& index);
  explicit QueryRunner(const Trace& trace);
  ~QueryRunner();

  // Runs one statement. Throws Error where it is no SQL, reads what is not there, wants to change something or was
  // interrupted; the message names the line and the column, and the nearest names.
  void run(std::string_view sql, QuerySink& sink);

  // Ends the statement that runs and all later ones, from a signal handler or another thread.
  void interrupt();
  bool was_interrupted() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// All tables with their columns, units and meanings, and all functions, for people.
std::string query_schema_text();

}  // namespace paceline::analysis
