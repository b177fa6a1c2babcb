// SPDX-License-Identifier: Apache-2.0
#include "analysis/graph/core_sharing.h"

#include <algorithm>
#include <optional>

#include "analysis/statistics/counters.h"

namespace paceline::analysis {
namespace core_sharing_parts {

// How many times as long the parts of a transfer take on a busy core: the helper thread and the computing one each get
// half of it, and the network rests for a while because a thread that wakes up waits for the other's slice to end.
// Closed loops on real runs (tests/bench/README.md).
constexpr double cpu_slowdown = 2, rest_slowdown = 1.5;

// The value of a sum at a time, between its samples in proportion.
double value_at(const Samples& samples, std::int64_t time_ns) {
  const auto after = std::ranges::upper_bound(samples.time_ns, time_ns);
  const auto i = static_cast<std::size_t>(after - samples.time_ns.begin());
  if (i == 0) return samples.value.front();
  if (i == samples.size()) return samples.value.back();
  const auto width = static_cast<double>(samples.time_ns[i] - samples.time_ns[i - 1]);
  const double part = static_cast<double>(time_ns - samples.time_ns[i - 1]) / width;
  return samples.value[i - 1] + part * (samples.value[i] - samples.value[i - 1]);
}

// How many cores the process kept busy from this time on.
std::optional<double> busy_cores(const Rank& rank, std::int64_t from_ns) {
  const Samples* time = find_counter(rank, "CPU time");
  if (time == nullptr || time->size() < 2 || time->time_ns.back() <= from_ns) return std::nullopt;
  const std::int64_t end_ns = time->time_ns.back();
  const double rise_us = value_at(*time, end_ns) - value_at(*time, from_ns);
  return std::max(rise_us, 0.0) * 1e3 / static_cast<double>(end_ns - from_ns);
}

// The cores that the ranks of the machine kept busy; nothing where one of them is not known.
std::optional<double> busy_cores(const Trace& trace, const RankCpus::Machine& machine,
                                 const std::vector<std::int64_t>& from_ns) {
  double busy = 0;
  for (const std::size_t r : machine.ranks) {
    const auto cores = busy_cores(trace.ranks[r], from_ns[r]);
    if (!cores) return std::nullopt;
    busy += *cores;
  }
  return machine.ranks.empty() ? std::nullopt : std::optional(busy);
}

}  // namespace core_sharing_parts

BesideWork beside_work(double work_ns, double transfer_ns, double cpu_ns, double taken) {
  using namespace core_sharing_parts;
  const double cpu = transfer_ns > 0 ? std::min(cpu_ns / transfer_ns, 1.0) : 0;
  const double slowdown = 1 + taken * (cpu * (cpu_slowdown - 1) + (1 - cpu) * (rest_slowdown - 1));
  const double lost = taken * cpu / slowdown;  // a part of the core
  const double together_ns = std::min(work_ns / (1 - lost), transfer_ns * slowdown);
  return {(1 - 1 / slowdown) * together_ns, lost * together_ns};
}

bool CoreSharing::any() const {
  return std::ranges::any_of(taken, [](double part) { return part > 0; });
}

double CoreSharing::most_taken() const { return taken.empty() ? 0 : std::ranges::max(taken); }

TransferCost CoreSharing::helper_cost(const TransferCost& transfer) const {
  if (copies) return transfer;
  const double ns = transfer.ns_per_byte;
  return {polling_cpu_share * transfer.latency_ns, std::min(ns, network_cpu_ns_per_byte + polling_cpu_share * ns)};
}

BesideWork CoreSharing::recorded_beside(double work_ns, const TransferCost& together, double bytes) const {
  BesideWork found;
  double low = 0, high = 1;  // of the transfer's time alone to that together
  for (int round = 0; round < 50; ++round) {
    const double part = (low + high) / 2;
    const TransferCost alone{part * together.latency_ns, part * together.ns_per_byte};
    const double transfer_ns = alone.of(bytes), cpu_ns = helper_cost(alone).of(bytes);
    found.lost_ns = 0;
    for (int i = 0; i < 20; ++i) found = beside_work(work_ns - found.lost_ns, transfer_ns, cpu_ns, most_taken());
    (transfer_ns + found.longer_ns < together.of(bytes) ? low : high) = part;
  }
  return found;
}

double used_share(const Trace& trace, const RankCpus& cpus, const std::vector<std::int64_t>& from_ns) {
  double largest = 0;
  for (const RankCpus::Machine& machine : cpus.machines) {
    largest = std::max(largest, core_sharing_parts::busy_cores(trace, machine, from_ns).value_or(0) / machine.cpus);
  }
  return std::min(largest, 1.0);
}

CoreSharing core_sharing(const Trace& trace, const RankCpus& cpus, const std::vector<std::int64_t>& from_ns) {
  CoreSharing out{std::vector<double>(trace.ranks.size(), 0), cpus.one_host};
  for (const RankCpus::Machine& machine : cpus.machines) {
    const auto busy = core_sharing_parts::busy_cores(trace, machine, from_ns);
    if (!busy) continue;
    const double spare = (machine.cpus - *busy) / static_cast<double>(machine.ranks.size());
    for (const std::size_t r : machine.ranks) out.taken[r] = std::clamp(1 - spare, 0.0, 1.0);
  }
  return out;
}

}  // namespace paceline::analysis
