// SPDX-License-Identifier: Apache-2.0
// paceline query: SQL over a run.
#include "analysis/query/query.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "analysis/cli/commands.h"
#include "analysis/cli/interruption.h"
#include "analysis/cli/print_line.h"
#include "analysis/cli/reading_options.h"
#include "analysis/query/output.h"
#include "profiler/format/error.h"

namespace paceline::cli {
namespace {

constexpr int first_signal_status = 128;  // a shell reports the end by a signal as this and its number

struct QueryOptions {
  std::vector<std::string> run;
  analysis::Processes processes = analysis::Processes::automatic;
  std::string sql, file, format = "table", output;
  bool schema = false;
};

std::string read_sql(const std::string& path) {
  const bool standard_input = path == "-";
  const std::string name = standard_input ? "the standard input" : path;
  std::FILE* file = standard_input ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) throw Error(fmt::format("{}: {}; --file needs a file with SQL", name, std::strerror(errno)));
  std::string text;
  char part[1 << 14];
  constexpr std::size_t longest = 1 << 20;
  while (const std::size_t got = std::fread(part, 1, sizeof part, file)) {
    text.append(part, got);
    if (text.size() > longest) break;
  }
  const bool failed = std::ferror(file) != 0;
  const int error = errno;
  if (!standard_input) std::fclose(file);
  if (failed)
    throw Error(fmt::format("{}: cannot be read: {}; --file needs a file with SQL", name, std::strerror(error)));
  return text;
}

analysis::QueryRunner* running = nullptr;  // what a signal ends

analysis::QueryFormat format_of(const std::string& name) {
  using analysis::QueryFormat;
  if (name == "csv") return QueryFormat::csv;
  if (name == "tsv") return QueryFormat::tsv;
  return name == "json" ? QueryFormat::json : QueryFormat::table;
}

int query(const QueryOptions& options) {
  if (options.schema) {
    fmt::print("{}", analysis::query_schema_text());
    return 0;
  }
  const std::string sql = options.sql.empty()  ? read_sql(options.file)
                          : options.sql == "-" ? read_sql("-")
                                               : options.sql;
  const analysis::Trace trace = cli::load_run(analysis::one_run(options.run, options.processes));
  for (const std::string& note : trace.notes) print_line(stderr, "paceline query: {}", note);
  analysis::QueryRunner runner(trace);
  running = &runner;
  const Interruption interruption([] { running->interrupt(); });
  const auto write = [&](std::FILE* file) {
    runner.run(sql, *analysis::query_output(format_of(options.format), file));
  };
  try {
    if (options.output.empty() || options.output == "-") {
      write(stdout);
    } else {
      write_output(options.output, write);
    }
  } catch (const Error&) {
    if (!runner.was_interrupted()) throw;
    fmt::print(stderr, "paceline query: interrupted; the result is not complete\n");
    return first_signal_status + Interruption::signal();
  }
  return 0;
}

}  // namespace

void add_query(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<QueryOptions>();
  CLI::App* command = app.add_subcommand("query", "Query a run with SQL: slices, collectives, messages, iterations, …");
  command->add_option("--format", options->format, "table (default), csv, tsv or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"table", "csv", "tsv", "json"}));
  command->add_option("-o,--output", options->output, "File to write. Default: standard output")->type_name("FILE");
  add_processes_option(*command, options->processes);
  command->add_option("--file", options->file, "File with the SQL; - for the standard input")->type_name("FILE");
  command->add_flag("--schema", options->schema, "List the tables with their columns and units, and the functions");
  command
      ->add_option(
          "RUN", options->run,
          "Run directory or trace file, or directories that hold different ranks of one job. Then, without --file, "
          "one SELECT statement; - for the standard input")
      ->type_name("");
  command->callback([&chosen, options] {
    if (!options->schema) {
      constexpr const char* example =
          "paceline query RUN 'SELECT name, count(*) FROM slices GROUP BY name', or --file QUERY.sql; "
          "paceline query --schema lists the tables";
      std::error_code error;
      const bool has_sql =
          options->run.size() > 1 && (options->file.empty() || !std::filesystem::exists(options->run.back(), error));
      if (has_sql) {
        options->sql = options->run.back();
        options->run.pop_back();
      }
      if (options->run.empty()) throw CLI::ValidationError(fmt::format("the run is missing: {}", example));
      if (options->sql.empty() == options->file.empty()) {
        throw CLI::ValidationError(
            fmt::format("{}: {}", options->sql.empty() ? "the SQL is missing" : "the SQL is given twice", example));
      }
    }
    chosen = [options] { return query(*options); };
  });
}

}  // namespace paceline::cli
