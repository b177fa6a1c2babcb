#include "analysis/exporters/export.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "analysis/cli/commands.h"
#include "analysis/load/load.h"

namespace paceline::cli {
namespace {

struct ExportOptions {
  std::string to, output, run;
};

int export_run(const ExportOptions& options) {
  const analysis::Trace trace = analysis::load_run(options.run);
  for (const std::string& note : trace.notes) fmt::print(stderr, "paceline export: {}\n", note);
  const auto write = options.to == "chrome" ? analysis::export_chrome : analysis::export_csv;
  if (options.output.empty() || options.output == "-") {
    write(trace, stdout);
    return 0;
  }
  write_output(options.output, [&](std::FILE* file) { write(trace, file); });
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand("export", "Write a run in the format of another tool");
  command->add_option("--to", options->to, "chrome (JSON for Perfetto and chrome://tracing) or csv")
      ->required()
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"chrome", "csv"}));
  command->add_option("-o,--output", options->output, "File to write. Default: standard output")->type_name("FILE");
  command->add_option("RUN", options->run, "Run directory or trace file")->required()->type_name("");
  command->callback([&chosen, options] { chosen = [options] { return export_run(*options); }; });
}

}  // namespace paceline::cli
