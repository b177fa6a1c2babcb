// SPDX-License-Identifier: Apache-2.0
#include "analysis/load/scratch_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "profiler/format/error.h"

namespace paceline::analysis {

ScratchFolder::ScratchFolder() {
  const char* parent = std::getenv("TMPDIR");
  std::string pattern = fmt::format("{}/paceline-XXXXXX", parent != nullptr && *parent != '\0' ? parent : "/tmp");
  if (mkdtemp(pattern.data()) == nullptr) {
    throw Error(fmt::format("{}: no temporary folder can be made there for unpacking: {}: set TMPDIR to another folder",
                            std::filesystem::path(pattern).parent_path().string(), std::strerror(errno)));
  }
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::uint64_t ScratchFolder::room() const {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(path_, error);
  return error ? 0 : space.available / 10 * 9;
}

}  // namespace paceline::analysis
