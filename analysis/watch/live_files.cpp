// SPDX-License-Identifier: Apache-2.0
#include "analysis/watch/live_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "analysis/text/numbers.h"
#include "profiler/format/error.h"
#include "profiler/format/liveness.h"
#include "profiler/format/reader.h"

namespace paceline::analysis {
namespace live_files_parts {

namespace fs = std::filesystem;

constexpr std::size_t most_slots_of_job = 8 << 20, most_slots_of_rank = 16 << 10;

int number_in(const std::map<std::string, std::string>& settings, const char* key, int from_header) {
  if (from_header >= 0) return from_header;
  int value = -1;
  if (const auto found = settings.find(key); found != settings.end()) {
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  }
  return value;
}

// A file that the recorder has closed is not gone: it ended.
bool is_gone(const format::TraceFacts& facts) {
  return facts.header.closed == 0 && format::liveness_of(facts) == format::Liveness::ended;
}

}  // namespace live_files_parts

double ns_per_tick(const format::FileHeader& header) {
  if (header.clock_source == format::ClockSource::monotonic_raw) return 1;
  const bool plausible = header.ticks_per_second > 1e3 && header.ticks_per_second < 1e12;
  return plausible ? 1e9 / header.ticks_per_second : 1;
}

double LiveFile::ticks_at(std::int64_t time_ns) const {
  return clock.time.inverse()(static_cast<double>(time_ns) + zero);
}

double LiveFile::middle(const Iteration& iteration) const {
  return ticks_at(iteration.start_ns + iteration.duration_ns / 2);
}

int LiveFile::world_size() const {
  return live_files_parts::number_in(rank->process().definitions.settings, "world_size",
                                     growing.facts().header.world_size);
}

bool LiveFiles::poll() {
  for (const std::filesystem::path& path : run_.paths) find_in(path);
  for (const auto& [path, file] : files_) read(*file);
  std::vector<LiveFile*> ranks = choose_ranks();
  std::swap(ranks_, ranks);
  return ranks_ != ranks;
}

std::uint64_t LiveFiles::bytes_read() const {
  std::uint64_t bytes = 0;
  for (const auto& [path, file] : files_) bytes += file->growing.bytes_read();
  return bytes;
}

std::vector<std::string> LiveFiles::left_out() const {
  std::vector<std::string> lines;
  for (const auto& [path, why] : left_out_) lines.push_back(why.starts_with(path) ? why : path + ": " + why);
  return lines;
}

void LiveFiles::find_in(const std::filesystem::path& directory) {
  using namespace live_files_parts;
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (!fs::exists(status)) return;
  std::vector<fs::path> found;
  if (fs::is_regular_file(status)) {
    found.push_back(directory);
  } else if (fs::is_directory(status)) {
    fs::directory_iterator entries(directory, error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error)) found.push_back(entries->path());
  }
  if (error || (!fs::is_directory(status) && found.empty())) {
    throw Error(fmt::format("{}: {}; give the directory of a run", directory.string(),
                            error ? error.message() : "neither a directory nor a file"));
  }
  for (const fs::path& path : found) {
    const std::string name = path.string();
    if (files_.contains(name)) continue;
    // The recorder gives a file its header before its name, and a trace of another tool is no job that runs.
    if (!format::is_trace_file(path)) continue;
    files_[name] = std::make_unique<LiveFile>(path);
  }
}

void LiveFiles::read(LiveFile& file) {
  using namespace live_files_parts;
  if (file.state == LiveState::ended || file.state == LiveState::killed || file.state == LiveState::lost) return;
  const std::size_t most_slots =
      std::max(most_slots_of_rank, most_slots_of_job / std::max<std::size_t>(files_.size(), 1));
  const auto take = [&] {
    const std::vector<NewEvents> news = file.growing.poll();
    if (file.rank == nullptr) file.rank = std::make_unique<LiveRank>();
    file.rank->add(news, file.growing.facts(), most_slots);
  };
  try {
    // The header names the process.
    if (file.rank == nullptr) take();
    // A process that is gone before the file is read has written all that it ever will.
    const bool gone = is_gone(file.growing.facts());
    take();
    const format::FileHeader& header = file.growing.facts().header;
    file.failures = 0;
    file.problem = file.growing.damage();
    if (header.closed != 0) {
      file.state = LiveState::ended;
    } else if (gone) {
      file.state = LiveState::killed;
    }
  } catch (const Error& error) {
    file.problem = error.what();
    // Once may be the moment in which the recorder replaces the file by the closed one.
    if (file.rank != nullptr && ++file.failures > 1) file.state = LiveState::lost;
  }
}

// One file for each rank: of several, the one that began last. Child processes are left out.
std::vector<LiveFile*> LiveFiles::choose_ranks() {
  using namespace live_files_parts;
  std::vector<LiveFile*> candidates;
  std::int64_t newest_start = 0;
  std::string job, launch;
  left_out_.clear();
  for (const auto& [path, file] : files_) {
    if (file->rank == nullptr) {
      left_out_[path] = file->problem;
      continue;
    }
    candidates.push_back(file.get());
    const format::TraceFacts& facts = file->growing.facts();
    if (facts.header.start_utc_ns >= newest_start && facts.parent.empty()) {
      newest_start = facts.header.start_utc_ns;
      job = facts.job;
      if (!facts.launch.empty()) launch = facts.launch;
    }
  }
  std::map<int, LiveFile*> chosen;
  std::vector<LiveFile*> unnumbered;
  std::size_t other_jobs = 0;
  const auto number_of = [](const LiveFile& file) {
    return number_in(file.rank->process().definitions.settings, "rank", file.growing.facts().header.rank);
  };
  // Of several mpirun of one job, one after the other, the last one is shown.
  std::map<std::string, std::set<int>> launches;  // the ranks of each
  for (const LiveFile* file : candidates) launches[file->growing.facts().launch].insert(number_of(*file));
  const std::set<int>& newest = launches[launch];
  for (LiveFile* file : candidates) {
    const format::TraceFacts& facts = file->growing.facts();
    const bool is_earlier = !launch.empty() && !facts.launch.empty() && facts.launch != launch &&
                            file->state != LiveState::running &&
                            std::ranges::any_of(launches[facts.launch], [&](int r) { return newest.contains(r); });
    if (facts.job != job || is_earlier) {
      ++other_jobs;
      continue;
    }
    const int number = number_of(*file);
    if (!facts.parent.empty() && number < 0) continue;  // a child without a rank of its own
    if (number < 0) {
      unnumbered.push_back(file);
      continue;
    }
    LiveFile*& of_rank = chosen[number];
    const auto order = [](const LiveFile* f) {
      return std::pair(f->growing.facts().parent.empty(), f->growing.facts().header.start_utc_ns);
    };
    if (of_rank == nullptr || order(of_rank) < order(file)) of_rank = file;
  }
  if (other_jobs > 0) {
    left_out_[run_.name()] = fmt::format("{} of an earlier job left out; record each run into a directory of its own",
                                         plural(other_jobs, "file", "files"));
  }
  std::ranges::stable_sort(unnumbered, {}, [](const LiveFile* f) { return f->growing.facts().header.start_utc_ns; });
  int next = 0;
  for (LiveFile* file : unnumbered) {
    while (chosen.contains(next)) ++next;
    chosen[next] = file;
  }
  std::vector<LiveFile*> ranks;
  for (const auto& [number, file] : chosen) {
    file->number = number;
    ranks.push_back(file);
  }
  return ranks;
}

}  // namespace paceline::analysis
