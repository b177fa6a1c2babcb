// SPDX-License-Identifier: Apache-2.0
#include "analysis/load/run_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/importers/pace/open.h"
#include "analysis/text/labels.h"
#include "analysis/text/lists.h"
#include "profiler/format/error.h"
#include "profiler/format/reader.h"

namespace paceline::analysis {
namespace run_paths {

namespace fs = std::filesystem;

// The ranks of one job that a directory holds.
struct Share {
  int world_size = 0;
  std::set<int> ranks;
};
using Shares = std::map<std::string, Share>;  // by job

// Nothing if the path is no directory of .pace files, or if a file does not name its job and its rank.
Shares shares_of(const fs::path& directory) {
  std::vector<TraceFile> files;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_regular_file(ignored) || !format::is_trace_file(entry->path())) continue;
    files.push_back({entry->path(), entry->path().string()});
  }
  Shares shares;
  for (const PaceEvents& file : open_pace_files(files).files) {
    const format::TraceFacts& facts = file.facts();
    const format::FileHeader& header = facts.header;
    Share& share = shares[facts.job];
    if (share.ranks.empty()) share.world_size = header.world_size;
    if (facts.job.empty() || header.rank < 0 || header.world_size < 2 || header.world_size != share.world_size)
      return {};
    share.ranks.insert(header.rank);
  }
  return shares;
}

bool are_one_run(const Shares& a, const Shares& b) {
  return !a.empty() && std::ranges::equal(a, b, [](const auto& one, const auto& other) {
    return one.first == other.first && one.second.world_size == other.second.world_size &&
           std::ranges::none_of(one.second.ranks, [&](int rank) { return other.second.ranks.contains(rank); });
  });
}

std::string note_of(const std::vector<fs::path>& paths, const Shares& shares) {
  constexpr std::size_t most_named = 4;
  std::vector<std::string> names;
  for (const fs::path& path : paths) names.push_back(path.string());
  if (names.size() > most_named) {
    names.resize(most_named - 1);
    names.push_back(fmt::format("{} more directories", paths.size() - names.size()));
  }
  const auto& [job, share] = *shares.begin();
  const std::vector<int> ranks(share.ranks.begin(), share.ranks.end());
  return fmt::format("{} hold {} of job {}: read as one run", list_text(names), rank_list(ranks), label(job, 60));
}

}  // namespace run_paths

std::string RunPaths::name() const {
  std::string name = paths.front().string();
  for (std::size_t i = 1; i < paths.size(); ++i) name += ' ' + paths[i].string();
  return name;
}

std::optional<Processes> processes_named(std::string_view name) {
  if (name == "auto") return Processes::automatic;
  if (name == "ranks") return Processes::ranks;
  if (name == "one") return Processes::one_rank;
  return std::nullopt;
}

std::vector<RunPaths> runs_among(const std::vector<std::string>& paths, Processes processes) {
  using namespace run_paths;
  std::vector<RunPaths> runs;
  std::vector<Shares> held;  // by the runs, together
  for (const std::string& path : paths) {
    const Shares shares = paths.size() > 1 ? shares_of(path) : Shares();
    const auto same = std::ranges::find_if(held, [&](const Shares& of_run) { return are_one_run(of_run, shares); });
    if (same == held.end()) {
      runs.emplace_back(path).processes = processes;
      held.push_back(shares);
      continue;
    }
    runs[static_cast<std::size_t>(same - held.begin())].paths.emplace_back(path);
    for (const auto& [job, share] : shares) (*same)[job].ranks.insert(share.ranks.begin(), share.ranks.end());
  }
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (runs[r].paths.size() > 1) runs[r].note = note_of(runs[r].paths, held[r]);
  }
  return runs;
}

RunPaths one_run(const std::vector<std::string>& paths, Processes processes) {
  std::vector<RunPaths> runs = runs_among(paths, processes);
  if (runs.size() == 1) return std::move(runs.front());
  throw Error(
      fmt::format("{}: is another run than {}: give one run, or directories that hold different ranks of one job",
                  runs[1].name(), runs[0].name()));
}

}  // namespace paceline::analysis
