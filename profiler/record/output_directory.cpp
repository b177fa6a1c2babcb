// SPDX-License-Identifier: Apache-2.0
#include "profiler/record/output_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <optional>
#include <system_error>
#include <thread>

#include "profiler/format/error.h"
#include "profiler/format/reader.h"
#include "profiler/launch/environment.h"
#include "profiler/launch/file_name.h"
#include "profiler/launch/launcher.h"
#include "profiler/record/job_marker.h"

namespace paceline::record {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view ending = ".pace";

std::string filled_in(const std::string& pattern) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  std::array<char, 4096> name{};
  const FileNameParts parts{host.data(), launched_rank().rank, static_cast<std::uint32_t>(getpid())};
  if (expand_file_name(pattern.c_str(), parts, name.data(), name.size()) == 0) {
    throw Error(fmt::format("-o {}: unknown placeholder; use %h, %r, %p, %q{{VARIABLE}} or %%", pattern));
  }
  return name.data();
}

// The job in a file's header; nothing if the header is damaged.
std::optional<std::string> job_of(const fs::path& file) {
  try {
    return format::read_trace_header(file).job;
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_still_recorded(const fs::path& file) {
  try {
    return may_still_be_recorded(format::read_trace_header(file));
  } catch (const Error&) {
    return false;
  }
}

enum class Owner { this_job, another_job, nobody };

// True if the file is empty or begins with zeros: a rank may have claimed the name for its trace, on a file system that
// cannot rename without replacing, or a network file system shows the contents late.
bool has_no_contents_yet(const fs::path& file) {
  std::error_code error;
  return fs::is_regular_file(fs::symlink_status(file, error)) && std::ifstream(file).get() <= 0;
}

// Whose trace the file is. Nobody's: it is not a trace, or another rank has just removed it.
Owner owner_of(const fs::path& file, const std::string& job) {
  using std::chrono::steady_clock;
  const auto give_up = steady_clock::now() + std::chrono::seconds(2);
  while (has_no_contents_yet(file) && steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (!format::is_trace_file(file)) return Owner::nobody;
  if (job_of(file) == job) return Owner::this_job;
  return format::is_trace_file(file) ? Owner::another_job : Owner::nobody;
}

}  // namespace

std::vector<fs::path> trace_files(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ending && fs::is_regular_file(entry.symlink_status()))
      files.push_back(entry.path());
  }
  return files;
}

fs::path absolute_directory(const fs::path& path, const char* option) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  if (!error) return absolute.lexically_normal();
  throw Error(
      fmt::format("{0} {1}: the current directory cannot be found ({2}); it may have been removed: change to "
                  "another one, or give {0} an absolute path",
                  option, path.string(), error.message()));
}

void check_placeholders(const std::string& option) {
  const fs::path path(option);
  filled_in(path.extension() == ending ? path.filename() : path);
  if (path.extension() == ending && path.has_parent_path()) filled_in(path.parent_path());
}

OutputPlace output_place(const std::string& option) {
  const fs::path path = option.empty() ? fs::path(default_output) : fs::path(option);
  OutputPlace place;
  if (path.extension() == ending) {
    place.pattern = path.filename();
    filled_in(place.pattern);
  } else {
    place.pattern = default_pattern;
  }
  const fs::path directory = path.extension() == ending ? path.parent_path() : path;
  place.directory = absolute_directory(directory.empty() ? "." : filled_in(directory), "-o");
  return place;
}

void claim_directory(const fs::path& directory, const std::string& job, bool force) {
  try {
    fs::create_directories(directory);
    if (access(directory.c_str(), W_OK | X_OK) != 0) {
      throw fs::filesystem_error("access", directory, std::error_code(errno, std::generic_category()));
    }
    mark_job(directory, job);
    for (const fs::path& file : trace_files(directory)) {
      const Owner owner = owner_of(file, job);
      if (owner == Owner::nobody && fs::exists(fs::symlink_status(file))) {
        fmt::print(stderr, "paceline record: {} is not a trace; it is left alone\n", file.string());
      }
      if (owner != Owner::another_job) continue;
      if (force && is_still_recorded(file)) {
        unmark_job(directory);
        throw Error(
            fmt::format("{} is of another run and still being recorded; --force does not remove it: end that "
                        "run, or choose another directory with -o",
                        file.string()));
      }
      if (!force) {
        unmark_job(directory);
        throw Error(
            fmt::format("{} has traces of another run ({}); choose another directory with -o, or --force to "
                        "remove them",
                        directory.string(), file.filename().string()));
      }
      fs::remove(file);
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(fmt::format("{}: {}; choose another directory with -o", directory.string(), error.code().message()));
  }
}

}  // namespace paceline::record
