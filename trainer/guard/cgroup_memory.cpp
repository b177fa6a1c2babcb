// SPDX-License-Identifier: Apache-2.0
#include "trainer/guard/cgroup_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

namespace paceline::train {
namespace {

constexpr std::uint64_t no_limit = ~std::uint64_t{0};

// The number in a file; nothing if the file is missing or contains the word "max".
std::optional<std::uint64_t> number_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::uint64_t number = 0;
  return in >> number ? std::optional(number) : std::nullopt;
}

std::uint64_t value_in(const std::filesystem::path& file, const std::string& key) {
  std::ifstream in(file);
  std::string word;
  std::uint64_t value = 0;
  while (in >> word >> value) {
    if (word == key) return value;
  }
  return 0;
}

struct Version {
  const char *limit, *usage, *cached;
};
constexpr Version version1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Version version2{"memory.max", "memory.current", "inactive_file"};

std::uint64_t left_of(const std::filesystem::path& group, const Version& version) {
  const auto limit = number_of(group / version.limit), usage = number_of(group / version.usage);
  if (!limit || !usage) return no_limit;
  const std::uint64_t used = *usage - std::min(*usage, value_in(group / "memory.stat", version.cached));
  return *limit - std::min(*limit, used);
}

}  // namespace

std::uint64_t cgroup_memory_left(const std::filesystem::path& groups, const std::filesystem::path& root) {
  std::uint64_t left = no_limit;
  std::ifstream in(groups);
  for (std::string line; std::getline(in, line);) {  // NUMBER:CONTROLLERS:PATH; version 2 has no controllers
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const bool second_version = controllers == ",,";
    if (!second_version && controllers.find(",memory,") == std::string::npos) continue;
    const std::filesystem::path top = second_version ? root : root / "memory";
    std::filesystem::path path = std::filesystem::path(line.substr(second + 1)).relative_path();
    while (true) {
      left = std::min(left, left_of(top / path, second_version ? version2 : version1));
      if (path.empty()) break;
      path = path.parent_path();
    }
  }
  return left;
}

}  // namespace paceline::train
