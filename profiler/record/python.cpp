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

}  // namespace paceline::record
