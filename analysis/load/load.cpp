#include "analysis/load/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "profiler/format/error.h"

namespace paceline::analysis {

namespace fs = std::filesystem;

namespace run_files {

struct Recognised {
  const TraceReader* reader = nullptr;
  std::vector<TraceFile> files;  // sorted by name
};

// The regular files directly in the directory.
std::vector<TraceFile> regular_files(const fs::path& directory) {
  std::vector<TraceFile> files;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) files.push_back({entry->path(), entry->path().string()});
  }
  if (error) throw Error(fmt::format("{}: {}", directory.string(), error.message()));
  std::ranges::sort(files, {}, &TraceFile::path);
  return files;
}

// The files of a run have one format: that of the first reader in the table that recognises any of them.
Recognised recognise(const fs::path& path, TraceReaders readers) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    throw Error(fmt::format("{}: no such file or directory", path.string()));
  }
  if (error) throw Error(fmt::format("{}: {}", path.string(), error.message()));
  const bool is_directory = fs::is_directory(status);
  if (!is_directory && !fs::is_regular_file(status)) {
    throw Error(
        fmt::format("{}: is neither a directory nor a regular file: give what paceline record made", path.string()));
  }
  const std::vector<TraceFile> candidates =
      is_directory ? regular_files(path) : std::vector<TraceFile>{{path, path.string()}};
  for (const TraceReader* reader : readers) {
    Recognised found{reader, {}};
    std::ranges::copy_if(candidates, std::back_inserter(found.files), reader->recognises);
    if (!found.files.empty()) return found;
  }
  if (!is_directory) {
    throw Error(fmt::format("{}: not a trace file: give a directory or file made by paceline record", path.string()));
  }
  throw Error(
      fmt::format("no traces in {0}: record some with paceline record -o {0} (a process makes one when it first "
                  "calls NVTX or MPI)",
                  path.string()));
}

}  // namespace run_files

std::vector<TraceFile> trace_files(const fs::path& path, TraceReaders readers) {
  return run_files::recognise(path, readers).files;
}

Trace load_run(const fs::path& path, const Progress& progress, TraceReaders readers) {
  const auto [reader, files] = run_files::recognise(path, readers);
  return reader->read(files, progress);
}

}  // namespace paceline::analysis
