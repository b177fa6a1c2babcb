// SPDX-License-Identifier: Apache-2.0
// The directory of a recording's files. The ranks of one job share a directory, and two jobs never do.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace paceline::record {

struct OutputPlace {
  std::filesystem::path directory;  // absolute
  std::string pattern;              // of file names, see file_name.h
};

// Splits the value of -o. A last component that ends in ".pace" is the pattern of the file names, and the rest is the
// directory, whose placeholders are replaced for this process. Throws Error if a placeholder is wrong.
OutputPlace output_place(const std::string& option);

// Checks the placeholders of -o without looking at the file system. Throws Error that names an unknown placeholder.
void check_placeholders(const std::string& option);

// The absolute path without "." and "..". Throws Error, which names the option, if the current directory no longer
// exists.
std::filesystem::path absolute_directory(const std::filesystem::path& path, const char* option);

// The regular files of the directory whose names end in .pace.
std::vector<std::filesystem::path> trace_files(const std::filesystem::path& directory);

// Creates the directory if necessary and marks it for this job (job_marker.h). Throws Error if it cannot be written to,
// if another job is running there, or if it has trace files of another job. With `force` those files are removed,
// except files that are still being recorded. A file that ends in .pace and is not a trace is named on standard error
// and left alone.
//
// The ranks of a job call this one after another, and some ranks may already be recording. A file without contents
// is therefore looked at again for up to 2 s. A file that another rank removes meanwhile is skipped at once.
void claim_directory(const std::filesystem::path& directory, const std::string& job, bool force);

}  // namespace paceline::record
