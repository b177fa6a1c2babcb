// A file that is either whole or not there.
#pragma once

#include <filesystem>
#include <string_view>

namespace paceline::train {

// Writes content beside `file`, syncs it to the disk and renames it over `file`. Throws Error; leaves nothing behind
// then.
void write_file_atomically(const std::filesystem::path& file, std::string_view content);

}  // namespace paceline::train
