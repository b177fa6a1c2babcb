// Where a recording's files go, and whether they may: the ranks of one job share a directory, two jobs do not.
#pragma once

#include <filesystem>
#include <string>

namespace paceline::record {

struct OutputPlace {
  std::filesystem::path directory;  // absolute
  std::string pattern;              // of file names, see file_name.h
};

// Splits what -o says: a last component that ends in ".pace" is the pattern of the files, all else is the directory,
// whose placeholders are filled in for this process. Throws Error if a placeholder is wrong.
OutputPlace output_place(const std::string& option);

// Checks the placeholders of -o without looking at the file system. Throws Error that names an unknown placeholder.
void check_placeholders(const std::string& option);

// The path, absolute and without dots. Throws Error, naming the option, where the current directory is gone.
std::filesystem::path absolute_directory(const std::filesystem::path& path, const char* option);

// Makes the directory if need be, and this job's (job_marker.h). Throws Error if it cannot be written to, if another
// job is running there, or if it has trace files of another job than `job`. With `force` those are removed, but for
// files that are still being recorded.
//
// The ranks of a job come here one by one, some after others have begun to record. So a file that cannot be read yet
// is looked at again for up to two seconds before it is taken for another job's.
void claim_directory(const std::filesystem::path& directory, const std::string& job, bool force);

}  // namespace paceline::record
