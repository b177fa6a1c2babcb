// Files read and written as a whole.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace paceline::train {

// Throws Error where it cannot be opened or read.
std::string read_file(const std::filesystem::path& file);

// Throws Error, in one line, where write_file_atomically() could not write or should not: `file` is there and is no
// regular file (a directory, a device), or its directory is missing or closed. Makes nothing.
void check_writable(const std::filesystem::path& file);

enum class Sync { no, yes };

// Afterwards the file is whole or, where there was none, still not there: writes content beside `file`, syncs it to the
// disk, unless it is one of many that can be made again, and renames it over `file`, or over what `file` links to.
// keep: so many versions stay, this one included: before the renaming, the file that is there becomes FILE.1, FILE.1
// becomes FILE.2 and so on. Throws Error; leaves nothing behind then.
void write_file_atomically(const std::filesystem::path& file, std::string_view content, Sync sync = Sync::yes,
                           unsigned keep = 1);

}  // namespace paceline::train
