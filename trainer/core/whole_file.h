// SPDX-License-Identifier: Apache-2.0
// Files read and written as a whole.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace paceline::train {

// Throws Error if the file cannot be opened or read.
std::string read_file(const std::filesystem::path& file);

// Throws Error if write_file_atomically() could not write the file or should not: `file` exists and is not a regular
// file (a directory, a device), or no file can be created in its directory. Leaves nothing behind.
void check_writable(const std::filesystem::path& file);

enum class Sync { no, yes };

// Replaces the file as a whole: writes `content` to a temporary file beside it and renames that file over `file`, or
// over the target if `file` is a symbolic link. A crash leaves the old file or the new one. Sync::yes writes the
// content to the disk before the renaming; files that can be made again do not need it. keep: how many versions stay,
// the new one included; the existing file becomes FILE.1, FILE.1 becomes FILE.2 and so on. Throws Error, and leaves no
// temporary file behind.
void write_file_atomically(const std::filesystem::path& file, std::string_view content, Sync sync = Sync::yes,
                           unsigned keep = 1);

}  // namespace paceline::train
