// SPDX-License-Identifier: Apache-2.0
// A private temporary folder that disappears with its object.
#pragma once

#include <cstdint>
#include <filesystem>

namespace paceline::analysis {

class ScratchFolder {
 public:
  // Makes a folder that only this user may enter, in $TMPDIR or else /tmp. Throws Error where that fails.
  ScratchFolder();
  // Removes the folder with everything in it.
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // What may be written to the folder's disk, in bytes: nine tenths of what is free there now.
  std::uint64_t room() const;

 private:
  std::filesystem::path path_;
};

}  // namespace paceline::analysis
