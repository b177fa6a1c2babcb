// SPDX-License-Identifier: Apache-2.0
#include "analysis/load/run_files.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <tuple>

#include "analysis/load/unpack.h"
#include "analysis/trace/parallel.h"
#include "profiler/format/error.h"

namespace paceline::analysis {

namespace fs = std::filesystem;

namespace run_files {

// The regular files directly in the directory.
std::vector<TraceFile> regular_files(const fs::path& directory) {
  std::vector<TraceFile> files;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) files.push_back({entry->path(), entry->path().string()});
  }
  if (error) throw Error(fmt::format("{}: {}", directory.string(), error.message()));
  return files;
}

std::vector<TraceFile> regular_files(const std::vector<fs::path>& directories) {
  std::vector<TraceFile> files;
  for (const fs::path& directory : directories) std::ranges::move(regular_files(directory), std::back_inserter(files));
  return files;
}

// The files that a pattern of the shell's kind matches, and those in the directories that it matches.
std::vector<TraceFile> matching_files(const std::string& pattern) {
  glob_t matches{};
  std::vector<TraceFile> files;
  if (glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
    for (std::size_t i = 0; i < matches.gl_pathc; ++i) {
      const fs::path path = matches.gl_pathv[i];
      std::error_code ignored;
      if (fs::is_directory(path, ignored)) {
        for (TraceFile& file : regular_files(path)) files.push_back(std::move(file));
      } else if (fs::is_regular_file(path, ignored)) {
        files.push_back({path, path.string()});
      }
    }
  }
  globfree(&matches);
  if (files.empty()) throw Error(fmt::format("{}: no file matches this pattern", pattern));
  return files;
}

enum class RunKind { directory, file, pattern };

RunKind kind_of_run(const fs::path& run) {
  std::error_code error;
  const fs::file_status status = fs::status(run, error);
  if (status.type() == fs::file_type::not_found) {
    if (run.string().find_first_of("*?[") != std::string::npos) return RunKind::pattern;
    throw Error(fmt::format("{}: no such file or directory", run.string()));
  }
  if (error) throw Error(fmt::format("{}: {}", run.string(), error.message()));
  if (fs::is_directory(status)) return RunKind::directory;
  if (fs::is_regular_file(status)) return RunKind::file;
  throw Error(
      fmt::format("{}: is neither a directory nor a regular file: give what paceline record made", run.string()));
}

// The index of the first reader that recognises the file.
std::optional<std::size_t> reader_of(const TraceFile& file, TraceReaders readers) {
  for (std::size_t r = 0; r < readers.size(); ++r) {
    if (readers[r]->recognises(file)) return r;
  }
  return std::nullopt;
}

// A trace file and the index of its reader.
struct Recognised {
  TraceFile file;
  std::size_t reader = 0;
};

std::uint64_t size_of(const fs::path& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  return error ? 0 : size;
}

// Looks for traces among files, and unpacks those that are packed.
class Search {
 public:
  Search(TraceReaders readers, const Progress& progress, RunFiles& run)
      : readers_(readers), progress_(progress), run_(run) {}

  // Adds the traces among the files to found(). Returns the archives among them.
  std::vector<TraceFile> look_at(const std::vector<TraceFile>& files) {
    std::vector<TraceFile> archives, compressed;
    for (const TraceFile& file : files) {
      const PackedHead head = packed_head(file.path);
      if (head.packing == Packing::archive) {
        archives.push_back(file);
      } else if (head.packing == Packing::compressed) {
        if (!head.damage.empty() && head.bytes.empty()) {
          run_.notes.push_back(fmt::format("{}: its compression is damaged: {}", file.name, head.damage));
        } else if (may_be_trace(head, file.name)) {
          compressed.push_back(file);
        }
      } else if (const auto reader = reader_of(file, readers_)) {
        found_.push_back({file, *reader});
      }
    }
    unpack(compressed);
    return archives;
  }

  void look_into(const std::vector<TraceFile>& archives) {
    Unpacker unpacker = make_unpacker(archives);
    std::vector<TraceFile> members;
    for (const TraceFile& archive : archives) {
      const fs::path folder = new_folder();
      run_.unpacked.push_back({folder, archive.name});
      Unpacker::Members got = unpacker.unpack_archive(archive, folder);
      std::ranges::move(got.files, std::back_inserter(members));
      std::ranges::move(got.notes, std::back_inserter(run_.notes));
    }
    look_at(members);  // archives in archives are no traces
  }

  std::vector<Recognised>& found() { return found_; }

 private:
  ScratchFolder& scratch() {
    if (run_.scratch == nullptr) run_.scratch = std::make_unique<ScratchFolder>();
    return *run_.scratch;
  }

  fs::path new_folder() {
    fs::path folder = scratch().path() / std::to_string(folders_++);
    fs::create_directory(folder);
    return folder;
  }

  Unpacker make_unpacker(const std::vector<TraceFile>& packed) {
    std::uint64_t bytes = 0;
    for (const TraceFile& file : packed) bytes += size_of(file.path);
    return {scratch().room(), bytes, progress_};
  }

  // True if a reader recognises the first bytes, or may recognise the file as a whole.
  bool may_be_trace(const PackedHead& head, const std::string& name) {
    if (head.bytes.starts_with("SQLite format 3")) return true;
    const TraceFile first{scratch().path() / "head", name};
    std::ofstream(first.path, std::ios::binary | std::ios::trunc) << head.bytes;
    return reader_of(first, readers_).has_value();
  }

  void unpack(const std::vector<TraceFile>& compressed) {
    if (compressed.empty()) return;
    Unpacker unpacker = make_unpacker(compressed);
    std::vector<TraceFile> targets;
    for (const TraceFile& file : compressed) {
      targets.push_back({new_folder() / file.path.stem(), file.name});
      run_.unpacked.push_back(targets.back());
    }
    std::vector<std::string> damage(compressed.size());
    parallel_for(compressed.size(),
                 [&](std::size_t i) { damage[i] = unpacker.unpack_file(compressed[i], targets[i].path); });
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const auto reader = reader_of(targets[i], readers_);
      if (!reader) continue;
      if (!damage[i].empty()) run_.notes.push_back(damage[i]);
      found_.push_back({targets[i], *reader});
    }
  }

  TraceReaders readers_;
  const Progress& progress_;
  RunFiles& run_;
  std::vector<Recognised> found_;
  std::size_t folders_ = 0;
};

// A file that Nsight Systems alone can read; "" if there is none.
std::string nsys_report(const fs::path& run) {
  const auto is_report = [](const fs::path& path) {
    return path.extension() == ".nsys-rep" || path.extension() == ".qdrep";
  };
  if (is_report(run)) return run.string();
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(run, error)) {
    if (is_report(entry.path())) return entry.path().string();
  }
  return "";
}

[[noreturn]] void refuse(const fs::path& run, RunKind kind, const std::vector<std::string>& notes, bool is_archive) {
  if (!notes.empty()) throw Error(notes.front());
  const std::string name = run.string();
  if (is_archive) throw Error(fmt::format("{}: this archive has no trace file", name));
  if (const std::string report = nsys_report(run); !report.empty()) {
    throw Error(
        fmt::format("{}: only Nsight Systems can read this file: make one for other tools from it with "
                    "nsys export --type sqlite",
                    report));
  }
  if (kind == RunKind::directory) {
    throw Error(
        fmt::format("no traces in {0}: record some with paceline record -o {0} (a process makes one when it first "
                    "calls NVTX or MPI), or give the directory of another tool's traces",
                    name));
  }
  throw Error(
      fmt::format("{}: not a trace file: give a directory or file made by paceline record, or a trace of "
                  "another tool (paceline info --help lists the formats)",
                  name));
}

void sort_by_format(std::vector<Recognised> found, TraceReaders readers, RunFiles& run) {
  std::ranges::stable_sort(found, {}, [](const Recognised& one) { return std::tie(one.reader, one.file.name); });
  run.reader = readers[found.front().reader];
  for (const Recognised& one : found) {
    const TraceReader* const reader = readers[one.reader];
    if (reader == run.reader) {
      run.files.push_back(one.file);
      continue;
    }
    if (run.others.empty() || run.others.back().reader != reader) run.others.push_back({reader, {}});
    run.others.back().files.push_back(one.file);
  }
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace run_files

std::string RunFiles::with_names(std::string text) const {
  // Backwards: "…/10" before "…/1".
  for (auto file = unpacked.rbegin(); file != unpacked.rend(); ++file) {
    run_files::replace_all(text, file->path.string(), file->name);
  }
  return text;
}

RunFiles find_run_files(const RunPaths& paths, const Progress& progress, TraceReaders readers) {
  using namespace run_files;
  RunFiles run;
  if (!paths.note.empty()) run.notes.push_back(paths.note);
  const fs::path& path = paths.paths.front();
  const RunKind kind = kind_of_run(path);
  const std::vector<TraceFile> files = kind == RunKind::directory ? regular_files(paths.paths)
                                       : kind == RunKind::pattern ? matching_files(path.string())
                                                                  : std::vector<TraceFile>{{path, path.string()}};
  Search search(readers, progress, run);
  const std::vector<TraceFile> archives = search.look_at(files);
  if (search.found().empty() && !archives.empty()) search.look_into(archives);
  if (search.found().empty()) refuse(path, kind, run.notes, kind == RunKind::file && !archives.empty());
  for (Recognised& one : search.found()) one.file.processes = paths.processes;
  sort_by_format(std::move(search.found()), readers, run);
  return run;
}

}  // namespace paceline::analysis
