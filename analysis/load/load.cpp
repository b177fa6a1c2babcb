#include "analysis/load/load.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/importers/pace/import.h"
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
  std::vector<format::TraceFile> files;
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    try {
      files.push_back(format::read_trace_file(paths[i]));
    } catch (const Error& error) {
      notes.emplace_back(error.what());
    }
    const double share = 0.5 * static_cast<double>(i + 1) / static_cast<double>(paths.size());
    if (progress && !progress(share)) throw Error("loading was stopped");
  }
  if (files.empty()) throw Error(notes.front());
  Progress second_half;
  if (progress) second_half = [&](double share) { return progress(0.5 + 0.5 * share); };
  Trace trace = import_pace(std::move(files), second_half);
  trace.notes.insert(trace.notes.begin(), notes.begin(), notes.end());
  return trace;
}

}  // namespace paceline::analysis
