#include "analysis/load/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/importers/pace/import.h"
#include "analysis/trace/parallel.h"
#include "profiler/format/error.h"
#include "profiler/format/reader.h"

namespace paceline::analysis {

namespace fs = std::filesystem;

std::vector<fs::path> trace_files(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    throw Error(fmt::format("{}: no such file or directory", path.string()));
  }
  if (error) throw Error(fmt::format("{}: {}", path.string(), error.message()));
  if (!fs::is_directory(status)) {
    if (!fs::is_regular_file(status)) {
      throw Error(
          fmt::format("{}: is neither a directory nor a regular file: give what paceline record made", path.string()));
    }
    if (!format::is_trace_file(path)) {
      throw Error(fmt::format("{}: not a trace file: give a directory or file made by paceline record", path.string()));
    }
    return {path};
  }
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored) && format::is_trace_file(entry->path())) files.push_back(entry->path());
  }
  if (error) throw Error(fmt::format("{}: {}", path.string(), error.message()));
  if (files.empty()) {
    throw Error(
        fmt::format("no traces in {0}: record some with paceline record -o {0} (a process makes one when it first "
                    "calls NVTX or MPI)",
                    path.string()));
  }
  std::ranges::sort(files);
  return files;
}

Trace load_run(const fs::path& path, const Progress& progress) {
  const std::vector<fs::path> paths = trace_files(path);
  std::vector<std::optional<PaceEvents>> opened(paths.size());
  std::vector<std::string> failures(paths.size());
  parallel_for(paths.size(), [&](std::size_t i) {
    try {
      opened[i].emplace(format::TraceFileReader(paths[i]));
    } catch (const Error& error) {
      failures[i] = error.what();
    }
  });
  std::vector<PaceEvents> files;
  for (std::optional<PaceEvents>& file : opened) {
    if (file) files.push_back(std::move(*file));
  }
  std::erase(failures, "");
  if (files.empty()) throw Error(failures.front());
  Trace trace = import_pace(std::move(files), progress);
  trace.notes.insert(trace.notes.begin(), failures.begin(), failures.end());
  return trace;
}

}  // namespace paceline::analysis
