// SPDX-License-Identifier: Apache-2.0
#include "profiler/record/python.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "profiler/format/error.h"
#include "profiler/launch/environment.h"

namespace paceline::record {

void put_on_python_path(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder / "sitecustomize.py", error)) {
    throw Error(fmt::format("{} is missing; build or install Paceline as a whole", folder.string()));
  }
  const char* given = std::getenv(env_python_path);
  const std::string_view others = given != nullptr ? given : "";
  if (others == folder.string() || others.starts_with(folder.string() + ":")) return;  // an outer `paceline record`
  const std::string path = others.empty() ? folder.string() : fmt::format("{}:{}", folder.string(), others);
  if (setenv(env_python_path, path.c_str(), 1) != 0) {
    throw Error(fmt::format("{}: {}", env_python_path, std::strerror(errno)));
  }
}

std::string why_no_hooks(std::span<const std::string> command) {
  if (command.empty()) return "";
  const std::string name = std::filesystem::path(command[0]).filename().string();
  if (!name.starts_with("python") && !name.starts_with("pypy")) return "";
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string_view option = command[i];
    if (option.size() < 2 || option[0] != '-' || option[1] == '-') break;
    for (const char letter : option.substr(1)) {
      if (letter == 'I' || letter == 'E') return fmt::format("-{} makes the interpreter ignore PYTHONPATH", letter);
      if (letter == 'S') return "-S makes the interpreter skip sitecustomize";
      if (letter == 'c' || letter == 'm') return "";  // what follows belongs to the program
      if (letter == 'W' || letter == 'X') {
        if (option.back() == letter) ++i;  // its value is the next argument
        break;
      }
    }
  }
  return "";
}

}  // namespace paceline::record
