// SPDX-License-Identifier: Apache-2.0
#include "analysis/run/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "analysis/text/lists.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace {

constexpr unsigned highest_number = 65535;

// Identifies the host. Its name is not enough, because containers may have the same.
std::string machine_of(const RankSummary& rank) { return rank.host + "\n" + rank.boot_id; }

std::string bytes_text(const std::string& number) {
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  return error == std::errc() && end == number.data() + number.size() ? memory_size(value) : number;
}

void append(std::string& text, const std::string& piece) { text += (text.empty() ? "" : ", ") + piece; }

std::string host_text(const RankSummary& rank) {
  std::string text = fact(rank, "cpu_model");
  if (const auto& cpus = fact(rank, "cpus_online"); !cpus.empty()) append(text, "CPUs " + cpus);
  if (const auto& nodes = fact(rank, "numa_nodes_online"); !nodes.empty()) append(text, "NUMA nodes " + nodes);
  if (const auto& bytes = fact(rank, "memory_bytes"); !bytes.empty()) append(text, bytes_text(bytes));
  return text;
}

std::string process_text(const RankSummary& rank) {
  std::string text;
  if (const auto& cpus = fact(rank, "cpus_allowed"); !cpus.empty()) append(text, "may run on CPUs " + cpus);
  if (const auto& nodes = fact(rank, "numa_nodes"); !nodes.empty()) text += " of NUMA nodes " + nodes;
  if (const auto& cpus = fact(rank, "cgroup_cpus"); !cpus.empty()) append(text, "limited to " + cpus + " CPUs");
  if (const auto& bytes = fact(rank, "cgroup_memory_bytes"); !bytes.empty()) {
    append(text, "limited to " + bytes_text(bytes) + " of memory");
  }
  if (const auto& gpus = fact(rank, "gpus_visible"); !gpus.empty()) append(text, "GPUs " + gpus);
  if (const auto& files = fact(rank, "limit_open_files"); !files.empty()) append(text, "open files " + files);
  if (const auto& stack = fact(rank, "limit_stack"); !stack.empty()) append(text, "stack " + bytes_text(stack));
  if (const auto& mpi = fact(rank, "mpi_library"); !mpi.empty()) append(text, mpi.substr(0, mpi.find(',')));
  return text;
}

// The largest number of these ranks that ran at the same time. Programs that a script runs one after another do not
// share their CPUs.
std::size_t most_at_once(std::span<const RankSummary> ranks, const std::vector<std::size_t>& which) {
  std::size_t most = 0;
  for (const std::size_t starting : which) {
    const auto time = ranks[starting].start_ns;
    const auto ran = [&](std::size_t r) { return ranks[r].start_ns <= time && time <= ranks[r].end_ns; };
    most = std::max(most, static_cast<std::size_t>(std::count_if(which.begin(), which.end(), ran)));
  }
  return most;
}

}  // namespace

std::set<unsigned> numbers_of(std::string_view list) {
  std::set<unsigned> numbers;
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at < end) {
    unsigned first = 0;
    auto parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc()) return {};
    unsigned last = first;
    if (parsed.ptr < end && *parsed.ptr == '-') parsed = std::from_chars(parsed.ptr + 1, end, last);
    if (parsed.ec != std::errc() || last < first) return {};
    for (unsigned number = first; number <= std::min(last, highest_number); ++number) numbers.insert(number);
    if (parsed.ptr < end && *parsed.ptr != ',') return {};
    at = parsed.ptr + 1;
  }
  return numbers;
}

std::vector<CrowdedCpus> crowded_cpus(std::span<const RankSummary> ranks) {
  std::map<std::string, std::vector<CrowdedCpus>> of_machine;  // masks that do not overlap
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RankSummary& rank = ranks[r];
    CrowdedCpus group{{r}, numbers_of(fact(rank, "cpus_allowed"))};
    if (group.cpus.empty()) continue;
    const std::set<unsigned> online = numbers_of(fact(rank, "cpus_online"));
    group.bound = !online.empty() && group.cpus != online;
    auto& groups = of_machine[machine_of(rank)];
    for (auto other = groups.begin(); other != groups.end();) {
      const bool touch =
          std::any_of(other->cpus.begin(), other->cpus.end(), [&](unsigned cpu) { return group.cpus.contains(cpu); });
      if (!touch) {
        ++other;
        continue;
      }
      group.ranks.insert(group.ranks.end(), other->ranks.begin(), other->ranks.end());
      group.cpus.merge(other->cpus);
      group.bound = online.empty() ? group.bound : group.cpus != online;
      other = groups.erase(other);
    }
    groups.push_back(std::move(group));
  }
  std::vector<CrowdedCpus> crowded;
  for (auto& [machine, groups] : of_machine) {
    for (CrowdedCpus& group : groups) {
      if (most_at_once(ranks, group.ranks) <= group.cpus.size()) continue;
      std::sort(group.ranks.begin(), group.ranks.end());
      crowded.push_back(std::move(group));
    }
  }
  return crowded;
}

std::vector<std::string> machine_lines(std::span<const RankSummary> ranks) {
  std::vector<std::string> lines;
  std::set<std::string> known;
  for (const RankSummary& rank : ranks) {
    if (rank.facts.empty() || !known.insert(machine_of(rank)).second) continue;
    const std::string host = rank.host.empty() ? "" : rank.host + ": ";
    if (const std::string text = host_text(rank); !text.empty()) lines.push_back(host + text);
    for (const auto& [key, value] : rank.facts) {
      for (const char* kind : {"nic.", "hca.", "gpu.", "gpu_link."}) {
        if (key.starts_with(kind)) {
          std::string name = key;
          name[name.find('.')] = ' ';
          lines.push_back(fmt::format("{}{}: {}", host, name, value));
        }
      }
    }
  }
  std::vector<std::pair<std::string, std::set<unsigned>>> alike;  // a description, and the ranks that it fits
  for (const RankSummary& rank : ranks) {
    const std::string text = process_text(rank);
    if (text.empty()) continue;
    const auto found = std::find_if(alike.begin(), alike.end(), [&](const auto& entry) { return entry.first == text; });
    std::set<unsigned>& numbers =
        found != alike.end() ? found->second : alike.emplace_back(text, std::set<unsigned>{}).second;
    numbers.insert(static_cast<unsigned>(rank.rank));
  }
  for (const auto& [text, numbers] : alike) {
    lines.push_back(fmt::format("rank{} {}: {}", numbers.size() == 1 ? "" : "s", cpu_list(numbers), text));
  }
  return lines;
}

}  // namespace paceline::analysis
