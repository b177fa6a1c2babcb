// SPDX-License-Identifier: Apache-2.0
// paceline compare: what became slower or faster between two runs.
#include <fmt/format.h>

#include "analysis/cli/commands.h"
#include "analysis/cli/interruption.h"
#include "analysis/cli/print_line.h"
#include "analysis/cli/reading_options.h"
#include "analysis/compare/compare.h"
#include "analysis/compare/junit.h"
#include "analysis/compare/render.h"
#include "profiler/format/error.h"

namespace paceline::cli {
namespace compare_command {

struct Options {
  std::vector<analysis::RunPaths> base, fresh;
  analysis::Processes processes = analysis::Processes::automatic;
  std::string format = "text", output;
  double fail_above_percent = -1;  // below 0: never
  std::optional<double> fail_above() const {
    return fail_above_percent < 0 ? std::nullopt : std::optional(fail_above_percent / 100);
  }
};

constexpr int became_slower = 1;

std::vector<analysis::RunProfile> profiles_of(const std::vector<analysis::RunPaths>& runs) {
  std::vector<analysis::RunProfile> profiles;
  for (const analysis::RunPaths& run : runs) {
    const analysis::Trace trace = cli::load_run(run);  // one trace in memory at a time
    for (const std::string& note : trace.notes) print_line(stderr, "paceline compare: {}", note);
    profiles.push_back(analysis::profile_run(trace, run.name()));
  }
  return profiles;
}

int compare(const Options& options) {
  const auto comparison = analysis::compare_runs(profiles_of(options.base), profiles_of(options.fresh));
  const std::string text = options.format == "json"    ? render_json(comparison)
                           : options.format == "md"    ? render_markdown(comparison)
                           : options.format == "junit" ? render_junit(comparison, options.fail_above())
                                                       : render_text(comparison);
  print_or_write(text, options.output);
  if (options.fail_above_percent < 0) return 0;
  const analysis::QuantityComparison* step = comparison.step();
  if (step == nullptr || !step->p) {
    throw Error(
        fmt::format("--fail-above {:g}%: {} and {} cannot be compared: record at least 24 iterations after "
                    "warm-up, more if they vary slowly, or several runs for each side",
                    options.fail_above_percent, options.base.front().name(), options.fresh.front().name()));
  }
  const bool failed = is_slower_by_more(comparison, *options.fail_above());
  if (failed) {
    flush_output();
    fmt::print(stderr, "paceline compare: a step became {:.1f} % slower, more than {:g} %\n", 100 * (step->ratio - 1),
               options.fail_above_percent);
  }
  return failed ? became_slower : 0;
}

// "5%" or "5"
double percentage(std::string text) {
  if (text.ends_with('%')) text.pop_back();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= 0 && value <= 1e6)) {
    throw CLI::ValidationError("--fail-above", "expected a percentage such as 5%");
  }
  return value;
}

}  // namespace compare_command

void add_compare(CLI::App& app, Command& chosen) {
  using compare_command::Options;
  auto* command = app.add_subcommand("compare", "Show what became slower or faster between two runs");
  auto options = std::make_shared<Options>();
  auto fail_above = std::make_shared<std::string>();
  auto base = std::make_shared<std::vector<std::string>>(), fresh = std::make_shared<std::vector<std::string>>();
  command
      ->add_option(
          "RUN", *base,
          "The base run and the new run; with --new, all of them are repeated runs of the base. Directories that "
          "hold different ranks of one job are one run")
      ->type_name("")
      ->required();
  command->add_option("--new", *fresh, "Repeated runs of the new side: everything after --new")->type_name("RUN");
  command->add_option("--format", options->format, "text, md, json or junit (XML for CI; see --fail-above)")
      ->type_name("FORMAT")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "md", "json", "junit"}));
  command->add_option("-o,--output", options->output, "File to write. Default: standard output")->type_name("FILE");
  add_processes_option(*command, options->processes);
  command
      ->add_option("--fail-above", *fail_above,
                   "Exit with status 1 if a step became more than PERCENT slower and this is unlikely to be chance")
      ->type_name("PERCENT");
  command->callback([options, fail_above, base, fresh, &chosen] {
    options->base = analysis::runs_among(*base, options->processes);
    options->fresh = analysis::runs_among(*fresh, options->processes);
    if (options->fresh.empty()) {
      if (options->base.size() != 2) {
        throw CLI::ValidationError("RUN", "expected two runs, or several base runs and --new with several new runs");
      }
      options->fresh = {options->base.back()};
      options->base.pop_back();
    }
    if (!fail_above->empty()) options->fail_above_percent = compare_command::percentage(*fail_above);
    chosen = [options] { return compare_command::compare(*options); };
  });
}

}  // namespace paceline::cli
