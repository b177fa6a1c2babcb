// What the counters and the facts of the machine say about a run: only what takes time or will break.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/metrics/counters.h"
#include "analysis/metrics/machine.h"
#include "analysis/report/findings.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace {

constexpr double much_waiting = 0.05;     // of a main thread's time
constexpr double often_throttled = 0.01;  // of a GPU's samples
constexpr unsigned usual_open_files = 1024;

// Bits of NVML's nvmlClocksEventReasons that say the hardware protects itself. A power cap in software is how a GPU
// works at full load, and nothing to warn of.
constexpr std::uint64_t slowdown_bits = 0x8 | 0x20 | 0x40 | 0x80;

std::string crowded_ranks_text(const Trace& trace, const std::vector<std::size_t>& which) {
  std::vector<int> ranks;
  for (const std::size_t r : which) ranks.push_back(trace.ranks[r].rank);
  return capitalised(rank_list(ranks));
}

void crowded(const Trace& trace, std::vector<Finding>& out) {
  std::vector<bool> said(trace.ranks.size());
  for (const CrowdedCpus& group : crowded_cpus(trace)) {
    double waited = 0;
    std::size_t counted = 0;
    for (const std::size_t r : group.ranks) {
      said[r] = true;
      if (const auto share = cpu_waiting_share(trace.ranks[r])) waited += *share, ++counted;
    }
    std::string text = fmt::format("{} share {} {} of {}: more ranks than CPUs.",
                                   crowded_ranks_text(trace, group.ranks), group.cpus.size() == 1 ? "CPU" : "CPUs",
                                   cpu_list(group.cpus), trace.ranks[group.ranks.front()].host);
    if (counted > 0) {
      text += fmt::format(" Their main threads waited {} of the time for one.",
                          percent(waited / static_cast<double>(counted)));
    }
    text += group.bound ? " Bind each rank to CPUs of its own, or to none (`mpirun --bind-to none`)."
                        : " Start fewer ranks on this host.";
    out.push_back({Severity::warning, std::move(text)});
  }
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    const Rank& rank = trace.ranks[r];
    const auto share = cpu_waiting_share(rank);
    if (said[r] || !share || *share < much_waiting) continue;
    const std::string& cpus = fact(rank, "cpus_allowed");
    out.push_back(
        {Severity::warning,
         fmt::format("The main thread of rank {} waited {} of the time for a CPU though it could have run: "
                     "more threads want to run on {} than it has. Give each rank fewer threads, or the job CPUs that "
                     "no other program uses.",
                     rank.rank, percent(*share), cpus.empty() ? rank.host : "CPUs " + cpus + " of " + rank.host)});
  }
}

void open_files(const Trace& trace, std::vector<Finding>& out) {
  std::map<std::string, std::vector<std::size_t>> low;  // by limit
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    const std::set<unsigned> limit = numbers_of(fact(trace.ranks[r], "limit_open_files"));
    if (limit.size() == 1 && *limit.begin() < usual_open_files) low[std::to_string(*limit.begin())].push_back(r);
  }
  for (const auto& [limit, ranks] : low) {
    out.push_back(
        {Severity::warning,
         fmt::format("{} may open {} files only (`ulimit -n`; 1,024 are usual): sockets between ranks and the "
                     "files of data loaders count, and a program that runs out of them fails.",
                     crowded_ranks_text(trace, ranks), limit)});
  }
}

void gpus(const Trace& trace, std::vector<Finding>& out) {
  for (const Rank& rank : trace.ranks) {
    for (const Track& track : rank.tracks) {
      const Samples& samples = track.samples;
      if (track.kind != TrackKind::counter || samples.size() == 0) continue;
      if (samples.name == "XID error") {
        out.push_back({Severity::problem,
                       fmt::format("{} of rank {} on {} reported XID error {:.0f}{}: NVIDIA's list of XID errors says "
                                   "what that means, `dmesg` what else happened.",
                                   samples.device, rank.rank, rank.host, samples.value.front(),
                                   samples.size() > 1 ? fmt::format(" and {} more", samples.size() - 1) : "")});
      } else if (samples.name == "throttle reasons") {
        const auto slow = std::count_if(samples.value.begin(), samples.value.end(), [](double bits) {
          return bits >= 0 && bits < 0x1p53 && (static_cast<std::uint64_t>(bits) & slowdown_bits) != 0;
        });
        const double share = static_cast<double>(slow) / static_cast<double>(samples.size());
        if (share < often_throttled) continue;
        out.push_back(
            {Severity::warning,
             fmt::format("{} of rank {} on {} had its clocks slowed down for heat or power in {} of its samples: "
                         "look at its cooling and its power supply.",
                         samples.device, rank.rank, rank.host, percent(share))});
      }
    }
  }
}

}  // namespace

std::optional<double> cpu_waiting_share(const Rank& rank) {
  const Samples* waiting = find_counter(rank, "waiting for a CPU", "main thread");
  if (waiting == nullptr || waiting->size() < 2) return std::nullopt;
  const std::int64_t ns = waiting->time_ns.back() - waiting->time_ns.front();
  if (ns <= 0) return std::nullopt;
  return std::max(waiting->value.back() - waiting->value.front(), 0.0) * 1e3 / static_cast<double>(ns);
}

std::vector<Finding> machine_findings(const Trace& trace) {
  std::vector<Finding> out;
  gpus(trace, out);
  crowded(trace, out);
  open_files(trace, out);
  return out;
}

}  // namespace paceline::analysis
