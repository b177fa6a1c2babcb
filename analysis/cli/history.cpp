// SPDX-License-Identifier: Apache-2.0
// paceline history: many runs of one job, by commit or date.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "analysis/cli/commands.h"
#include "analysis/cli/interruption.h"
#include "analysis/cli/print_line.h"
#include "analysis/cli/reading_options.h"
#include "analysis/report/build.h"
#include "analysis/report/history.h"
#include "analysis/report/render.h"
#include "analysis/run/read_run.h"
#include "profiler/format/error.h"

namespace paceline::cli {
namespace history_command {

using analysis::Json;

struct Options {
  std::vector<std::string> runs;
  std::string by, format, output;
  analysis::Processes processes = analysis::Processes::automatic;
};

// A report in JSON names its schema in the first line after the brace.
bool is_report(const std::string& path) {
  char begin[200] = {};
  std::ifstream(path, std::ios::binary).read(begin, sizeof begin - 1);
  return std::string_view(begin).find("\"paceline.report/1\"") != std::string_view::npos;
}

Json json_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  try {
    return Json::parse(file);
  } catch (const Json::exception& error) {
    throw Error(fmt::format("{}: a damaged report: {}; write it again with `paceline report --format json`", path,
                            error.what()));
  }
}

int history(const Options& options) {
  std::vector<analysis::HistoryRow> rows;
  std::vector<std::string> without, traces;
  const auto add = [&](const Json& report, const std::string& path) {
    for (auto& row : analysis::history_rows(report, path, without)) rows.push_back(std::move(row));
  };
  for (const std::string& path : options.runs) {
    if (is_report(path)) {
      add(json_of_file(path), path);
    } else {
      traces.push_back(path);
    }
  }
  for (const analysis::RunPaths& run : analysis::runs_among(traces, options.processes)) {
    bool failed = false;
    auto read = read_run(run, {}, interruptible, failed);  // one in memory at a time
    for (const std::string& note : read->notes) print_line(stderr, "paceline history: {}", note);
    std::vector<analysis::RunAnalysis> one;
    one.push_back(std::move(read->run));
    add(analysis::report_json(analysis::build_report(std::move(one))), run.name());
  }
  for (const std::string& run : without) {
    print_line(stderr, "paceline history: {} left out: it has no iterations", run);
  }
  const analysis::History history = analysis::history_of(std::move(rows), options.by);
  const std::string extension = std::filesystem::path(options.output).extension().string();
  const std::string format = !options.format.empty() ? options.format
                             : extension == ".html"  ? "html"
                             : extension == ".md"    ? "md"
                                                     : "text";
  const std::string text = format == "html" ? render_history_html(history)
                           : format == "md" ? render_history_markdown(history)
                                            : render_history_text(history);
  print_or_write(text, options.output);
  return 0;
}

}  // namespace history_command

void add_history(CLI::App& app, Command& chosen) {
  using history_command::Options;
  auto* command = app.add_subcommand("history", "Show many runs of one job beside each other, by commit or date");
  auto options = std::make_shared<Options>();
  command
      ->add_option("RUN", options->runs,
                   "Runs, or reports that `paceline report --format json` wrote: CI can keep these instead of traces")
      ->type_name("")
      ->required();
  add_processes_option(*command, options->processes);
  command
      ->add_option("--by", options->by,
                   "What the runs are called by: a key of `paceline record --set`. Default: commit, else the date")
      ->type_name("KEY");
  command->add_option("--format", options->format, "text, md or html. Default: by the extension of FILE, else text")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "md", "html"}));
  command->add_option("-o,--output", options->output, "File to write. Default: standard output")->type_name("FILE");
  command->callback([options, &chosen] { chosen = [options] { return history_command::history(*options); }; });
}

}  // namespace paceline::cli
