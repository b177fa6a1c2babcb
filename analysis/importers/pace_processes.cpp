#include "analysis/importers/pace_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "profiler/format/error.h"

namespace paceline::analysis {
namespace {

int setting(const PaceDefinitions& definitions, const char* key, int from_header) {
  if (from_header >= 0) return from_header;
  const auto found = definitions.settings.find(key);
  int value = -1;
  if (found != definitions.settings.end()) {
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  }
  return value;
}

void refuse_mixed_jobs(const std::vector<format::TraceFile>& files) {
  const format::TraceFile* first = nullptr;
  for (const format::TraceFile& file : files) {
    if (file.job.empty()) continue;
    if (first == nullptr) first = &file;
    if (file.job != first->job) {
      throw Error(
          fmt::format("{} and {} are of different runs (jobs {} and {}): give the files of one run, or record each "
                      "run into a directory of its own",
                      first->path.string(), file.path.string(), first->job, file.job));
    }
  }
}

// The recorded process that this one is a child of, if its file is here; the last of a line of grandparents.
const PaceProcess* root_of(const PaceProcess& process, const std::vector<PaceProcess>& processes) {
  const PaceProcess* root = &process;
  for (std::size_t step = 0; step < processes.size() && !root->file.parent.empty(); ++step) {
    const auto parent = std::ranges::find_if(processes, [&](const PaceProcess& candidate) {
      return same_machine(candidate, process) && std::to_string(candidate.file.header.pid) == root->file.parent;
    });
    if (parent == processes.end()) break;
    root = &*parent;
  }
  return root == &process ? nullptr : root;
}

// Takes out the processes whose events belong to another one's rank.
std::vector<PaceProcess> take_children(std::vector<PaceProcess>& processes) {
  std::vector<std::uint32_t> roots;  // process ids, 0 = nobody's child
  for (const PaceProcess& process : processes) {
    const PaceProcess* root = root_of(process, processes);
    roots.push_back(root != nullptr ? root->file.header.pid : 0);
  }
  std::vector<PaceProcess> children, others;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    processes[p].child_of = roots[p];
    (roots[p] != 0 ? children : others).push_back(std::move(processes[p]));
  }
  processes = std::move(others);
  return children;
}

// Of several processes of one rank, keeps the one with the most events.
void keep_one_a_rank(std::vector<PaceProcess>& processes, std::vector<std::string>& notes) {
  std::ranges::stable_sort(processes, [](const PaceProcess& a, const PaceProcess& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    return a.definitions.events > b.definitions.events;
  });
  for (std::size_t i = 1; i < processes.size();) {
    const PaceProcess &kept = processes[i - 1], &other = processes[i];
    if (other.rank < 0 || other.rank != kept.rank) {
      ++i;
      continue;
    }
    notes.push_back(fmt::format("{} left out: process {} is rank {} too, and recorded fewer events than process {}",
                                other.file.path.string(), other.file.header.pid, other.rank, kept.file.header.pid));
    processes.erase(processes.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void number_the_rest(std::vector<PaceProcess>& processes) {
  std::set<int> taken;
  for (const PaceProcess& process : processes) taken.insert(process.rank);
  std::vector<PaceProcess*> unnumbered;
  for (PaceProcess& process : processes) {
    if (process.rank < 0) unnumbered.push_back(&process);
  }
  std::ranges::stable_sort(unnumbered, {}, [](const PaceProcess* process) { return process->file.header.start_utc_ns; });
  int next = 0;
  for (PaceProcess* process : unnumbered) {
    while (taken.contains(next)) ++next;
    process->rank = next++;
  }
}

}  // namespace

bool same_machine(const PaceProcess& a, const PaceProcess& b) {
  return a.file.host == b.file.host && a.file.boot_id == b.file.boot_id;
}

PaceProcesses sort_processes(std::vector<format::TraceFile> files, std::vector<std::string>& notes) {
  refuse_mixed_jobs(files);
  std::vector<PaceProcess> processes;
  for (format::TraceFile& file : files) {
    PaceProcess process{std::move(file), {}};
    process.definitions = definitions_of(process.file);
    process.rank = setting(process.definitions, "rank", process.file.header.rank);
    process.world_size = setting(process.definitions, "world_size", process.file.header.world_size);
    process.local_rank = setting(process.definitions, "local_rank", process.file.header.local_rank);
    processes.push_back(std::move(process));
  }
  std::vector<PaceProcess> children = take_children(processes);
  keep_one_a_rank(processes, notes);
  number_the_rest(processes);
  std::ranges::stable_sort(processes, {}, &PaceProcess::rank);
  return {std::move(processes), std::move(children)};
}

}  // namespace paceline::analysis
