// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/pace/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>

#include "analysis/trace/parallel.h"
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

void refuse_mixed_jobs(const std::vector<PaceEvents>& files) {
  const format::TraceFacts* first = nullptr;
  for (const PaceEvents& events : files) {
    const format::TraceFacts& file = events.facts();
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

std::string machine_key(const format::TraceFacts& file) { return file.host + '\n' + file.boot_id; }

// The files of one process, by time. Process ids are reused, so the start time identifies a process, too.
struct Family {
  std::vector<std::size_t> files;  // indices into the processes
  int rank = -1;
  std::optional<std::size_t> parent;  // the family that this one's events belong to
  std::string unrecorded_parent;      // or the process that it was forked from
  bool spawned = false;               // by Python's multiprocessing
  bool starts_ranks = false;          // has no rank, and processes with ranks are its nearest recorded descendants
};

// Names a process of this file's machine: by PID:START, or by PID:START:NAMESPACE in another PID namespace than the
// file's. Also a process id alone.
std::string process_key(const format::TraceFacts& file, const std::string& name) {
  const std::size_t start = name.find(':');
  const std::size_t other = start == name.npos ? name.npos : name.find(':', start + 1);
  const std::string pid_namespace = other == name.npos ? std::to_string(file.pid_namespace) : name.substr(other + 1);
  return machine_key(file) + '\n' + pid_namespace + '\n' + name.substr(0, other);
}

std::string own_name(const format::TraceFacts& file) {
  return fmt::format("{}:{}", file.header.pid, file.process_start);
}

// Both have one id on one machine, and in one PID namespace where the files name it. Files of version 1 identify
// processes only by their ids. In older files two containers on a machine may have processes of one id and start.
bool is_same_process(const format::TraceFacts& a, const format::TraceFacts& b) {
  if (a.header.rank >= 0 && b.header.rank >= 0 && a.header.rank != b.header.rank) return false;
  if (a.process_start > 0 && b.process_start > 0) return a.process_start == b.process_start;
  const std::int64_t start_a = plausible_process_start_utc_ns(a), start_b = plausible_process_start_utc_ns(b);
  return start_a > 0 && start_b > 0 && std::abs(start_a - start_b) < 1'000'000'000;
}

double end_utc_ns(const PaceProcess& process) {
  const format::FileHeader& header = process.file.header;
  const bool plausible = header.ticks_per_second > 1e3 && header.ticks_per_second < 1e12;
  return static_cast<double>(header.start_utc_ns) +
         static_cast<double>(process.definitions.last_ticks) * 1e9 / (plausible ? header.ticks_per_second : 1e9);
}

// True if `next` begins after `last` has ended. Both are on one machine and so on one clock.
bool follows(const PaceProcess& next, const PaceProcess& last) {
  const format::FileHeader &a = last.file.header, &b = next.file.header;
  if (a.clock_source == b.clock_source) return b.start_ticks >= a.start_ticks + last.definitions.last_ticks;
  return static_cast<double>(b.start_utc_ns) >= end_utc_ns(last);
}

class Families {
 public:
  explicit Families(std::vector<PaceProcess>& processes) : processes_(processes) {
    std::vector<std::size_t> order(processes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t p) { return processes[p].file.header.start_utc_ns; });
    std::multimap<std::string, std::size_t> by_pid;
    for (const std::size_t p : order) add(p, by_pid);
    for (Family& family : families_) find_parent(family);
  }

  // Gives every file its role and, as rank_index, the number of its rank's first file.
  std::vector<std::size_t> assign(std::vector<std::string>& notes) {
    const std::set<std::string> in_turn = scripts();
    std::map<std::string, std::vector<std::size_t>> groups;  // of families that form one rank
    for (std::size_t f = 0; f < families_.size(); ++f) {
      const Family& root = families_[root_of(f)];
      std::string group = fmt::format("rank {}", root.rank);
      if (root.rank < 0) {
        group = root.unrecorded_parent.empty() ? fmt::format("process {}", root_of(f)) : root.unrecorded_parent;
        if (const std::string script = script_of(root); in_turn.contains(script)) group = "programs of " + script;
      }
      groups[group].push_back(f);
    }
    std::vector<std::size_t> left_out;
    for (auto& [name, members] : groups) {
      if (families_[root_of(members.front())].starts_ranks) {
        leave_launcher_out(members, left_out, notes);
      } else {
        assign_group(members, left_out, notes);
      }
    }
    return left_out;
  }

 private:
  const format::TraceFacts& first(const Family& family) const { return processes_[family.files.front()].file; }

  void add(std::size_t p, std::multimap<std::string, std::size_t>& by_pid) {
    const format::TraceFacts& file = processes_[p].file;
    const std::string pid = process_key(file, std::to_string(file.header.pid));
    const auto [from, to] = by_pid.equal_range(pid);
    for (auto known = from; known != to; ++known) {
      Family& family = families_[known->second];
      if (!is_same_process(first(family), file)) continue;
      family.files.push_back(p);
      if (processes_[p].rank >= 0) family.rank = processes_[p].rank;
      return;
    }
    by_pid.emplace(pid, families_.size());
    by_name_.emplace(process_key(file, own_name(file)), families_.size());
    by_pid_.emplace(pid, families_.size());
    Family family;
    family.files = {p};
    family.rank = processes_[p].rank;
    // multiprocessing.spawn puts this on the command line of its children.
    family.spawned = std::ranges::find(file.command, "--multiprocessing-fork") != file.command.end();
    families_.push_back(std::move(family));
  }

  void find_parent(Family& family) {
    const format::TraceFacts& file = first(family);
    const auto self = static_cast<std::size_t>(&family - families_.data());
    if (file.ancestors.empty()) {
      const auto found = by_pid_.find(process_key(file, file.parent));
      if (!file.parent.empty() && found != by_pid_.end() && found->second != self) family.parent = found->second;
      return;
    }
    for (const std::string& ancestor : file.ancestors) {
      const auto found = by_name_.find(process_key(file, ancestor));
      if (found == by_name_.end() || found->second == self) continue;
      Family& above = families_[found->second];
      if (family.rank < 0 || family.rank == above.rank) {
        family.parent = found->second;
      } else if (above.rank < 0) {
        above.starts_ranks = true;
      }
      return;
    }
    // Workers do not take part in communication: a process that got its rank from MPI or torch.distributed is none.
    if (processes_[family.files.front()].definitions.settings.contains("rank")) return;
    const auto forks = std::min(static_cast<std::size_t>(file.forked), file.ancestors.size());
    if (forks > 0) {
      family.unrecorded_parent = process_key(file, file.ancestors[forks - 1]);
    } else if (family.spawned && family.rank >= 0) {
      family.unrecorded_parent = process_key(file, file.ancestors.front());
    }
  }

  std::size_t root_of(std::size_t family) const {
    for (std::size_t step = 0; step < families_.size() && families_[family].parent; ++step) {
      family = *families_[family].parent;
    }
    return family;
  }

  // Names the process that started this one, where that may be a script: "" where something tells the rank.
  std::string script_of(const Family& family) const {
    const format::TraceFacts& file = first(family);
    const bool lone = family.rank < 0 && !family.parent && family.unrecorded_parent.empty() && !family.starts_ranks;
    return lone && !file.ancestors.empty() ? process_key(file, file.ancestors.front()) : "";
  }

  // Those that started one process after another: ranks of one job would run at the same time.
  std::set<std::string> scripts() const {
    std::map<std::string, const Family*> latest;
    std::set<std::string> in_turn, at_once;
    for (const Family& family : families_) {  // by their starts
      const std::string script = script_of(family);
      if (script.empty()) continue;
      const Family*& before = latest[script];
      if (before != nullptr && !follows(processes_[family.files.front()], processes_[before->files.back()])) {
        at_once.insert(script);
      }
      in_turn.insert(script);
      before = &family;
    }
    for (const std::string& script : at_once) in_turn.erase(script);
    return in_turn;
  }

  std::int64_t start_of(std::size_t family) const { return first(families_[family]).header.start_utc_ns; }

  // torchrun opens a file where it asks for GPUs.
  void leave_launcher_out(const std::vector<std::size_t>& members, std::vector<std::size_t>& left_out,
                          std::vector<std::string>& notes) {
    const std::size_t before = left_out.size();
    for (const std::size_t f : members) std::ranges::copy(families_[f].files, std::back_inserter(left_out));
    const std::size_t others = left_out.size() - before - 1;
    notes.push_back(fmt::format("{}{} left out: this process started the ranks and is none itself",
                                first(families_[root_of(members.front())]).path.string(),
                                others == 0 ? "" : fmt::format(" and {} of its child processes", others)));
  }

  void assign_group(std::vector<std::size_t>& members, std::vector<std::size_t>& left_out,
                    std::vector<std::string>& notes) {
    std::ranges::stable_sort(members, {}, [&](std::size_t f) { return start_of(f); });
    const auto is_own = [&](std::size_t f) { return !families_[f].parent && families_[f].unrecorded_parent.empty(); };
    std::vector<std::size_t> own;
    std::ranges::copy_if(members, std::back_inserter(own), is_own);
    const std::string machine = machine_key(first(families_[own.empty() ? members.front() : own.back()]));
    std::erase_if(own, [&](std::size_t f) { return machine_key(first(families_[f])) != machine; });
    const std::size_t leader = own.empty() ? members.front() : own.front();
    const std::size_t leading_file = families_[leader].files.front();
    std::size_t last = leading_file;  // the rank's latest program
    for (const std::size_t f : members) {
      for (const std::size_t p : families_[f].files) {
        PaceProcess& process = processes_[p];
        process.rank_index = leading_file;
        process.role = PaceRole::helper;
        if (machine_key(process.file) != machine) {
          notes.push_back(fmt::format("{} left out: rank {} was started again on {}, and that process is taken",
                                      process.file.path.string(), process.rank, first(families_[leader]).host));
          left_out.push_back(p);
        } else if (p == leading_file) {
          if (!own.empty()) process.role = PaceRole::whole;
        } else if (is_own(f) && !own.empty() && follows(process, processes_[last])) {
          process.role = PaceRole::successor;
          last = p;
        }
      }
    }
    if (own.empty()) {
      notes.push_back(fmt::format("{}: the process that started it was not recorded; its rank has helper threads only",
                                  processes_[leading_file].file.path.string()));
    }
  }

  std::vector<PaceProcess>& processes_;
  std::vector<Family> families_;
  std::unordered_map<std::string, std::size_t> by_name_, by_pid_;
};

// Processes that MPI_Comm_spawn started have ranks in another MPI_COMM_WORLD, equal to ranks of the first one.
void leave_spawned_out(std::vector<PaceProcess>& processes, std::vector<std::string>& notes) {
  const auto is_spawned = [](const PaceProcess& process) {
    return process.definitions.settings.contains("spawned_by_mpi");
  };
  const std::ptrdiff_t recorded = std::ranges::count_if(processes, is_spawned);
  if (recorded == static_cast<std::ptrdiff_t>(processes.size())) return;
  int started = 0;
  for (const PaceProcess& process : processes) {
    if (!is_spawned(process)) started += std::max(0, setting(process.definitions, "spawned_processes", -1));
  }
  if (started == 0 && recorded == 0) return;
  std::string note = fmt::format("{} not shown: MPI_Comm_spawn started {}, as ranks of another MPI_COMM_WORLD",
                                 std::max<std::ptrdiff_t>(started, recorded) == 1
                                     ? "1 process is"
                                     : fmt::format("{} processes are", std::max<std::ptrdiff_t>(started, recorded)),
                                 std::max<std::ptrdiff_t>(started, recorded) == 1 ? "it" : "them");
  if (recorded > 0) {
    note += fmt::format("; {} recorded: give {} on its own to see it", recorded,
                        std::ranges::find_if(processes, is_spawned)->file.path.string());
  }
  notes.push_back(std::move(note));
  std::erase_if(processes, is_spawned);
}

// The processes that one start of mpirun or srun, or one attempt of torchrun, started.
struct Launch {
  std::set<int> ranks;
  double start_ns = 0, end_ns = 0;
  const PaceProcess* first = nullptr;
  std::size_t files = 0;
};

// One job may start several runs, one after the other (a batch script with two mpirun). The last one is taken.
void leave_earlier_launches_out(std::vector<PaceProcess>& processes, std::vector<std::string>& notes) {
  std::map<std::string, Launch> launches;
  for (const PaceProcess& process : processes) {
    if (process.rank < 0 || process.file.launch.empty()) continue;
    Launch& launch = launches[process.file.launch];
    const auto start_ns = static_cast<double>(process.file.header.start_utc_ns);
    if (launch.first == nullptr || start_ns < launch.start_ns) {
      launch.start_ns = start_ns;
      launch.first = &process;
    }
    launch.end_ns = std::max(launch.end_ns, end_utc_ns(process));
    launch.ranks.insert(process.rank);
    ++launch.files;
  }
  if (launches.size() < 2) return;
  const auto& last =
      std::ranges::max_element(launches, {}, [](const auto& launch) { return launch.second.start_ns; })->second;
  std::set<std::string> earlier;
  for (const auto& [name, launch] : launches) {
    const bool repeats = std::ranges::any_of(launch.ranks, [&](int rank) { return last.ranks.contains(rank); });
    if (&launch == &last || !repeats || launch.end_ns > last.start_ns) continue;
    earlier.insert(name);
    const std::string others =
        launch.files == 1 ? "" : fmt::format(" and {} other file{}", launch.files - 1, launch.files == 2 ? "" : "s");
    notes.push_back(
        fmt::format("{}{} left out: an earlier mpirun, srun or attempt of torchrun in the same job wrote them, and the "
                    "last one is taken; "
                    "move them into a "
                    "directory of their own to see that run, and record each run with an -o of its own",
                    launch.first->file.path.string(), others));
  }
  std::erase_if(processes, [&](const PaceProcess& process) { return earlier.contains(process.file.launch); });
}

void number_the_rest(std::vector<PaceProcess>& processes, const std::vector<std::size_t>& leaders) {
  std::set<int> taken;
  std::vector<PaceProcess*> unnumbered;
  for (const std::size_t p : leaders) {
    taken.insert(processes[p].rank);
    if (processes[p].rank < 0) unnumbered.push_back(&processes[p]);
  }
  std::ranges::stable_sort(unnumbered, {},
                           [](const PaceProcess* process) { return process->file.header.start_utc_ns; });
  int next = 0;
  for (PaceProcess* process : unnumbered) {
    while (taken.contains(next)) ++next;
    process->rank = next++;
  }
}

}  // namespace

std::int64_t plausible_process_start_utc_ns(const format::TraceFacts& file) {
  const std::int64_t start = file.header.process_start_utc_ns;
  const double age = static_cast<double>(file.header.start_utc_ns) - static_cast<double>(start);
  return start > 0 && age > -1e9 && age < static_cast<double>(format::longest_process_age_ns) ? start : 0;
}

std::uint64_t main_thread_of(const format::TraceFacts& file, const PaceDefinitions& definitions) {
  const int training = setting(definitions, "training_thread", -1);
  return training >= 0 ? static_cast<std::uint64_t>(training) : file.header.pid;
}

PaceProcesses sort_processes(std::vector<PaceEvents> files, std::vector<std::string>& notes) {
  refuse_mixed_jobs(files);
  std::vector<PaceProcess> processes;
  for (PaceEvents& events : files) {
    PaceProcess process{std::move(events), {}, {}};
    process.file = process.events.facts();
    processes.push_back(std::move(process));
  }
  parallel_for(processes.size(),
               [&](std::size_t p) { processes[p].definitions = definitions_of(processes[p].events); });
  for (PaceProcess& process : processes) {
    process.rank = setting(process.definitions, "rank", process.file.header.rank);
    process.world_size = setting(process.definitions, "world_size", process.file.header.world_size);
    process.local_rank = setting(process.definitions, "local_rank", process.file.header.local_rank);
  }
  leave_spawned_out(processes, notes);
  leave_earlier_launches_out(processes, notes);
  const std::vector<std::size_t> left_out = Families(processes).assign(notes);
  // The rank of a process may have become known only after exec.
  for (const PaceProcess& process : processes) {
    PaceProcess& leader = processes[process.rank_index];
    if (process.role != PaceRole::successor || process.rank < 0) continue;
    leader.rank = process.rank, leader.world_size = process.world_size, leader.local_rank = process.local_rank;
  }
  std::vector<std::size_t> leaders, others;  // as numbers of files
  for (std::size_t p = 0; p < processes.size(); ++p) {
    if (std::ranges::find(left_out, p) != left_out.end()) continue;
    (processes[p].rank_index == p ? leaders : others).push_back(p);
  }
  number_the_rest(processes, leaders);
  std::ranges::stable_sort(leaders, {}, [&](std::size_t p) { return processes[p].rank; });
  std::ranges::stable_sort(others, {}, [&](std::size_t p) { return processes[p].file.header.start_utc_ns; });
  std::map<std::size_t, std::size_t> rank_of_file;
  PaceProcesses sorted;
  for (const std::size_t p : leaders) {
    rank_of_file[p] = sorted.ranks.size();
    processes[p].rank_index = sorted.ranks.size();
    sorted.ranks.push_back(std::move(processes[p]));
  }
  for (const std::size_t p : others) {
    processes[p].rank_index = rank_of_file.at(processes[p].rank_index);
    sorted.others.push_back(std::move(processes[p]));
  }
  return sorted;
}

}  // namespace paceline::analysis
