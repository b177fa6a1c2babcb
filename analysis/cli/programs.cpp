// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/cli/commands.h"
#include "profiler/format/error.h"

namespace paceline::cli {
namespace {

// Becomes the program beside this one; returns only by an exception.
int become(const std::string& program, const std::vector<std::string>& arguments, const char* part) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / program;
  if (error) throw Error(fmt::format("/proc/self/exe: {}; mount /proc, or start {}", error.message(), program));
  std::vector<char*> raw{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) raw.push_back(const_cast<char*>(argument.c_str()));
  raw.push_back(nullptr);
  execv(path.c_str(), raw.data());
  if (errno == ENOENT) {
    throw Error(fmt::format("{} is missing: build Paceline with {}=ON", path.string(), part));
  }
  throw Error(fmt::format("{} cannot be started: {}", path.string(), std::strerror(errno)));
}

void add_program(CLI::App& app, Command& chosen, const char* name, const char* description, const char* part) {
  CLI::App* command = app.add_subcommand(name, description);
  command->set_help_flag();  // --help, as every other argument, is the program's
  command->prefix_command();
  command->callback(
      [=, &chosen] { chosen = [=] { return become(std::string("paceline-") + name, command->remaining(), part); }; });
}

}  // namespace

void add_programs(CLI::App& app, Command& chosen) {
  add_program(app, chosen, "train", "Train a network on this rank (paceline-train)", "PACELINE_TRAINER");
  add_program(app, chosen, "view", "Show runs on a timeline (paceline-view)", "PACELINE_VIEWER");
}

}  // namespace paceline::cli
