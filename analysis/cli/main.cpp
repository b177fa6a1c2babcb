// SPDX-License-Identifier: Apache-2.0
// The program `paceline`. Exit status: 0 done; 1 the work failed; 2 wrong usage.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string>

#include "analysis/cli/commands.h"
#include "analysis/cli/print_line.h"
#include "cmake/version/version.h"
#include "profiler/record/record.h"
#include "profiler/record/stage.h"

namespace {

constexpr int work_failed = 1, wrong_usage = 2, recorder_failed = 125;

// "paceline info": the program and the command that was being parsed.
std::string command_line_so_far(const CLI::App& app) {
  std::string text = app.get_name();
  for (const CLI::App* command : app.get_subcommands()) text += " " + command->get_name();
  return text;
}

void complain(const std::string& command, std::string why) {
  std::ranges::replace(why, '\n', ' ');
  try {
    paceline::cli::print_line(stderr, "{}: {}", command, why);
  } catch (const std::exception&) {  // standard error is closed or full, so nothing can be reported
  }
}

int refuse(const std::string& command, std::string why) {
  std::ranges::replace(why, '\n', ' ');
  paceline::cli::print_line(stderr, "{}: {}; see {} --help", command, why, command);
  return wrong_usage;
}

// Also for help and version: their output may meet a full disk.
int finish_output(int status) {
  if (status == 0) paceline::cli::flush_output();
  return status;
}

// Before directories are read: files of killed programs that are still where `paceline record --stage` put them.
void fetch_staged_files(const std::string& command, int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    for (const std::string& line : paceline::record::collect_stages(argv[i])) complain(command, line);
  }
}

int run(int argc, char** argv) {
  CLI::App app("Records, analyses and compares data-parallel training jobs", "paceline");
  app.set_version_flag("--version", [] { return paceline::version_text("paceline"); });
  app.require_subcommand(1);
  paceline::cli::Command chosen;
  paceline::record::add_record(app, chosen);
  paceline::cli::add_watch(app, chosen);
  paceline::cli::add_info(app, chosen);
  paceline::cli::add_report(app, chosen);
  paceline::cli::add_compare(app, chosen);
  paceline::cli::add_history(app, chosen);
  paceline::cli::add_whatif(app, chosen);
  paceline::cli::add_query(app, chosen);
  paceline::cli::add_export(app, chosen);
  paceline::cli::add_programs(app, chosen);

  const auto has_name = [&](const CLI::App* command) { return command->check_name(argv[1]); };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(has_name).empty()) {
    return refuse("paceline", fmt::format("there is no command '{}'", argv[1]));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    errno = 0;  // so that finish_output sees only errors of printing
    if (error.get_exit_code() == 0) return finish_output(app.exit(error));  // --help, --version
    const bool option_alone = app.get_subcommands().empty() && argc > 1;
    return refuse(command_line_so_far(app),
                  option_alone ? fmt::format("there is no option '{}'", argv[1]) : error.what());
  }
  try {
    if (app.got_subcommand("info") || app.got_subcommand("report")) {
      fetch_staged_files(command_line_so_far(app), argc, argv);
    }
    return finish_output(chosen());
  } catch (const std::bad_alloc&) {
    complain(command_line_so_far(app), "not enough memory");
  } catch (const std::exception& error) {
    complain(command_line_so_far(app), error.what());
  }
  return app.got_subcommand("record") ? recorder_failed : work_failed;
}

}  // namespace

int main(int argc, char** argv) {
  const bool record = argc > 1 && std::strcmp(argv[1], "record") == 0;
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {  // the last resort
    complain(record ? "paceline record" : "paceline", error.what());
  }
  return record ? recorder_failed : work_failed;
}
