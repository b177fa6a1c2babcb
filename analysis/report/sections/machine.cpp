// SPDX-License-Identifier: Apache-2.0
// What the counters and the facts of the machine show about a run: only what takes time or will break.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "analysis/report/sections.h"
#include "analysis/report/sentences.h"
#include "analysis/report/values.h"
#include "analysis/text/lists.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace machine_section {

constexpr double often_throttled = 0.01;  // of a GPU's samples, or of the periods of a CPU limit
constexpr unsigned usual_open_files = 1024;

// An error of a GPU that several ranks share is one error.
struct XidError {
  const RankSummary* first = nullptr;
  const GpuTrouble* gpu = nullptr;
  std::vector<int> ranks;
};

std::vector<XidError> xid_errors(const RunAnalysis& run) {
  std::vector<XidError> errors;
  for (const RankSummary& rank : run.per_rank) {
    for (const GpuTrouble& gpu : rank.gpu_troubles) {
      if (!gpu.xid_error) continue;
      auto same = std::ranges::find_if(errors, [&](const XidError& error) {
        return error.first->host == rank.host && error.gpu->device == gpu.device &&
               error.gpu->xid_error == gpu.xid_error && error.gpu->further_errors == gpu.further_errors;
      });
      if (same == errors.end()) same = errors.insert(same, {&rank, &gpu, {}});
      same->ranks.push_back(rank.rank);
    }
  }
  return errors;
}

void gpus(const RunAnalysis& run, std::vector<Finding>& out) {
  for (const RankSummary& rank : run.per_rank) {
    for (const GpuTrouble& gpu : rank.gpu_troubles) {
      if (gpu.xid_error || gpu.slowed_down < often_throttled) continue;
      out.push_back(
          {Severity::warning,
           fmt::format("{} of rank {}{} had its clocks slowed down for heat or power in {} of its samples. Check "
                       "its cooling and its power supply.",
                       gpu.device, rank.rank, on_host(rank), percent(gpu.slowed_down))});
    }
  }
  for (const auto& [rank, gpu, ranks] : xid_errors(run)) {
    out.push_back(
        {Severity::problem,
         fmt::format("{} of {}{} reported XID error {:.0f}{}. NVIDIA's list of XID errors explains the number, "
                     "and `dmesg` shows what else happened.",
                     gpu->device, rank_list(ranks), on_host(*rank), *gpu->xid_error,
                     gpu->further_errors > 0 ? fmt::format(" and {} more", gpu->further_errors) : "")});
  }
}

std::string rank_names(const RunAnalysis& run, const std::vector<std::size_t>& which) {
  std::vector<int> ranks;
  for (const std::size_t r : which) ranks.push_back(run.per_rank[r].rank);
  return rank_list(ranks);
}

std::string ranks_text(const RunAnalysis& run, const std::vector<std::size_t>& which) {
  return capitalised(rank_names(run, which));
}

// What the waiting costs in the mean over all ranks, where `shares` is the sum of the ranks' shares of their time.
double cost_s(const RunAnalysis& run, double shares) {
  return 1e-9 * static_cast<double>(run.wall_ns) * shares / static_cast<double>(run.per_rank.size());
}

// Returns which ranks are in a crowd.
std::set<std::size_t> crowded(const RunAnalysis& run, std::vector<Finding>& out) {
  std::set<std::size_t> all;
  for (const CrowdedCpus& group : run.crowded_cpus) {
    double waited = 0, counted = 0;
    for (const std::size_t r : group.ranks) {
      all.insert(r);
      if (const auto& waiting = run.per_rank[r].waiting_for_cpu) waited += *waiting, ++counted;
    }
    std::string text =
        fmt::format("{} share {} {} of {}: more ranks than CPUs.", ranks_text(run, group.ranks),
                    group.cpus.size() == 1 ? "CPU" : "CPUs", cpu_list(group.cpus), run.per_rank[group.ranks[0]].host);
    if (counted > 0)
      text += fmt::format(" Their main threads waited {} of the time for a CPU.", percent(waited / counted));
    text += group.bound ? " Bind each rank to CPUs of its own, or to none (`mpirun --bind-to none`)."
                        : " Start fewer ranks on this host.";
    out.push_back({.severity = Severity::warning, .text = std::move(text), .cost_s = cost_s(run, waited)});
  }
  return all;
}

// One finding for the ranks of a host.
void busy_cpus(const RunAnalysis& run, const std::set<std::size_t>& in_a_crowd, std::vector<Finding>& out) {
  std::map<std::string, std::vector<std::size_t>> by_host;
  for (std::size_t r = 0; r < run.per_rank.size(); ++r) {
    const RankSummary& rank = run.per_rank[r];
    if (!in_a_crowd.contains(r) && rank.waiting_for_cpu.value_or(0) >= much_cpu_waiting)
      by_host[rank.host].push_back(r);
  }
  const auto waited = [&](std::size_t r) { return *run.per_rank[r].waiting_for_cpu; };
  for (const auto& [host, ranks] : by_host) {
    double all = 0;
    for (const std::size_t r : ranks) all += waited(r);
    const auto [least, most] = std::ranges::minmax(ranks, {}, waited);
    std::string share = percent(waited(least));
    if (const std::string high = percent(waited(most)); high != share) share += " to " + high;
    const std::string& cpus = fact(run.per_rank[ranks[0]], "cpus_allowed");
    out.push_back(
        {.severity = Severity::warning,
         .text = fmt::format(
             "The main {} of {} {} ready to run but waited {} of the time for a CPU: more threads are "
             "ready to run than there are CPUs ({}). Give each rank fewer threads, or give the job CPUs "
             "that no other program uses.",
             ranks.size() == 1 ? "thread" : "threads", rank_names(run, ranks), ranks.size() == 1 ? "was" : "were",
             share, ranks.size() > 1 || cpus.empty() ? "on " + host : fmt::format("CPUs {} of {}", cpus, host)),
         .cost_s = cost_s(run, all)});
  }
}

void open_files(const RunAnalysis& run, std::vector<Finding>& out) {
  std::map<std::string, std::vector<std::size_t>> low;  // ranks by limit
  for (std::size_t r = 0; r < run.per_rank.size(); ++r) {
    const std::set<unsigned> limit = numbers_of(fact(run.per_rank[r], "limit_open_files"));
    if (limit.size() == 1 && *limit.begin() < usual_open_files) low[std::to_string(*limit.begin())].push_back(r);
  }
  for (const auto& [limit, ranks] : low) {
    out.push_back({Severity::warning,
                   fmt::format("{} may open only {} files (`ulimit -n`; 1,024 is usual). Sockets between ranks and the "
                               "files of data loaders count, and a program fails when it reaches the limit.",
                               ranks_text(run, ranks), limit)});
  }
}

// The ranks of one control group have the same counters.
std::vector<std::vector<std::size_t>> ranks_of_cgroups(const RunAnalysis& run) {
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t r = 0; r < run.per_rank.size(); ++r) {
    const RankSummary& rank = run.per_rank[r];
    if (!rank.cgroup) continue;
    groups[rank.host + "\n" + rank.boot_id + "\n" + fact(rank, "cgroup")].push_back(r);
  }
  std::vector<std::vector<std::size_t>> out;
  for (auto& [name, ranks] : groups) out.push_back(std::move(ranks));
  return out;
}

void cgroups(const RunAnalysis& run, std::vector<Finding>& out) {
  for (const std::vector<std::size_t>& ranks : ranks_of_cgroups(run)) {
    // The rank that was recorded the longest saw the most.
    CgroupUse use;
    for (const std::size_t r : ranks) {
      const CgroupUse& of_rank = *run.per_rank[r].cgroup;
      if (of_rank.periods >= use.periods) use = of_rank;
    }
    const RankSummary& first = run.per_rank[ranks[0]];
    const std::string whose = fmt::format("The cgroup of {}", rank_names(run, ranks));
    const char* them = ranks.size() == 1 ? "it" : "them";
    if (use.periods > 0 && use.throttled_periods / use.periods >= often_throttled) {
      const double lost_s = std::min(use.throttled_s, 1e-9 * static_cast<double>(first.wall_ns));
      out.push_back({.severity = Severity::warning,
                     .text = fmt::format("{} limits {} to {} CPUs: it was throttled in {} of {} periods, {} in all, "
                                         "added up over the CPUs. Raise the CPU limit (`--cpus` of docker, "
                                         "`resources.limits.cpu` of Kubernetes, `--cpus-per-task` of Slurm), or start "
                                         "fewer threads.",
                                         whose, them, fact(first, "cgroup_cpus"), count(use.throttled_periods),
                                         count(use.periods), seconds(use.throttled_s)),
                     .cost_s = lost_s * static_cast<double>(ranks.size()) / static_cast<double>(run.per_rank.size())});
    }
    const std::string& limit = fact(first, "cgroup_memory_bytes");
    const std::string memory = limit.empty() ? "" : fmt::format(" of {}", memory_size(std::atof(limit.c_str())));
    if (use.oom_kills > 0) {
      out.push_back(
          {Severity::problem,
           fmt::format("{} reached its memory limit{}, and the kernel killed {} in it. Raise the memory "
                       "limit (`--memory`, `resources.limits.memory`, `--mem`), or use less memory.",
                       whose, memory, plural(static_cast<std::size_t>(use.oom_kills), "process", "processes"))});
    } else if (use.memory_hits + use.memory_reclaims > 0) {
      out.push_back({Severity::info,
                     fmt::format("{} was at its memory limit{} {} times: the kernel freed memory before the program "
                                 "went on. This is harmless if the cache of files filled it. Otherwise raise the "
                                 "memory limit (`--memory`, `resources.limits.memory`, `--mem`).",
                                 whose, memory, count(use.memory_hits + use.memory_reclaims))});
    }
  }
}

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  gpus(run, out);
  busy_cpus(run, crowded(run, out), out);
  open_files(run, out);
  cgroups(run, out);
}

void figures(const RunAnalysis& run, Json& out) { set(out, "waiting_for_cpu_share", run.waiting_for_cpu); }

}  // namespace machine_section

RunSection sections::machine() { return {.findings = machine_section::findings, .figures = machine_section::figures}; }

}  // namespace paceline::analysis
