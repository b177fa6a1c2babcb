// The program `paceline`. Exit status: 0 done; 1 the work failed; 2 wrong usage.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>

#include "analysis/cli/commands.h"
#include "profiler/format/error.h"
#include "profiler/record/record.h"

namespace {

constexpr int work_failed = 1, wrong_usage = 2;

// "paceline info": the program and the command that was being parsed.
std::string command_line_so_far(const CLI::App& app) {
  std::string text = app.get_name();
  for (const CLI::App* command : app.get_subcommands()) text += " " + command->get_name();
  return text;
}

int refuse(const std::string& command, std::string why) {
  std::ranges::replace(why, '\n', ' ');
  fmt::print(stderr, "{}: {}; see {} --help\n", command, why, command);
  return wrong_usage;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Records, analyses and compares data-parallel training jobs", "paceline");
  app.set_version_flag("--version", "paceline " PACELINE_VERSION);
  app.require_subcommand(1);
  paceline::cli::Command chosen;
  paceline::record::add_record(app, chosen);
  paceline::cli::add_info(app, chosen);
  paceline::cli::add_report(app, chosen);
  paceline::cli::add_export(app, chosen);
  paceline::cli::add_programs(app, chosen);

  const auto has_name = [&](const CLI::App* command) { return command->check_name(argv[1]); };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(has_name).empty()) {
    return refuse("paceline", fmt::format("there is no command '{}'", argv[1]));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const bool option_alone = app.get_subcommands().empty() && argc > 1;
    return refuse(command_line_so_far(app),
                  option_alone ? fmt::format("there is no option '{}'", argv[1]) : error.what());
  }
  try {
    return chosen();
  } catch (const paceline::Error& error) {
    fmt::print(stderr, "{}: {}\n", command_line_so_far(app), error.what());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "{}: not enough memory\n", command_line_so_far(app));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", command_line_so_far(app), error.what());
  }
  return work_failed;
}
