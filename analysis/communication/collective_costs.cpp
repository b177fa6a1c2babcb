// SPDX-License-Identifier: Apache-2.0
#include "analysis/communication/collective_costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/phases/selection.h"
#include "analysis/statistics/statistics.h"

namespace paceline::analysis {
namespace collective_cost_parts {

constexpr std::uint64_t most_small_bytes = 4096;
constexpr std::size_t fewest_small = 5;
constexpr double times_small = 4;       // a large collective takes at least this many times as long as a small one
constexpr double least_size_ratio = 8;  // of the sizes through which α + β n is laid
// Where the median collective takes less time than this, its fixed cost may be the reason; the link is not called slow.
constexpr double least_transfer_s = 1e-3, least_transfer_on_devices_s = 2e-4;
constexpr double nearly_all = 0.05;  // of the iterations may be below a limit

double seconds_of(const Collective& collective) { return 1e-9 * static_cast<double>(collective.transfer_ns); }

// The hosts of the members, and whether devices talk.
struct HostSet {
  std::vector<std::string> machines;
  bool on_devices = false;
  auto operator<=>(const HostSet&) const = default;
};

struct LinkSamples {
  std::vector<std::uint32_t> ranks;
  std::vector<const Collective*> large;
  std::vector<std::int64_t> small_ns;
};

LinkUse use_of(const LinkSamples& samples, const Collectives& collectives, std::span<const LinkEnd> ends) {
  LinkUse use{.hosts = {}, .ranks = samples.ranks};
  for (const std::uint32_t rank : use.ranks) {
    if (std::ranges::find(use.hosts, ends[rank].host) == use.hosts.end()) use.hosts.push_back(ends[rank].host);
  }
  const std::int64_t small = samples.small_ns.size() < fewest_small ? 0 : median(samples.small_ns);
  std::vector<std::int64_t> rates, sizes;
  for (const Collective* collective : samples.large) {
    if (static_cast<double>(collective->transfer_ns) < times_small * static_cast<double>(small)) continue;
    const double factor = bus_factor(collectives.operations[collective->operation], collective->members);
    rates.push_back(
        static_cast<std::int64_t>(static_cast<double>(collective->bytes) * factor / seconds_of(*collective)));
    sizes.push_back(static_cast<std::int64_t>(collective->bytes));
  }
  use.collectives = rates.size();
  use.bytes = static_cast<std::uint64_t>(median(sizes));
  use.fastest_bytes_per_s = static_cast<double>(quantile(rates, 0.9));
  use.bytes_per_s = static_cast<double>(median(std::move(rates)));
  return use;
}

// α in ns, and β in ns for each byte.
struct Line {
  double fixed = 0, for_byte = 0;
  double half() const { return for_byte > 0 ? fixed / for_byte : INFINITY; }
};

// Through the median transfers of the sizes, weighted by their counts.
std::optional<Line> line_through(const std::map<std::uint64_t, std::vector<std::int64_t>>& transfers) {
  if (transfers.empty()) return std::nullopt;
  const auto least = transfers.begin()->first, most = transfers.rbegin()->first;
  const bool apart = static_cast<double>(most) >= least_size_ratio * static_cast<double>(least);
  if (!apart && most > most_small_bytes) return std::nullopt;
  double ff = 0, fn = 0, nn = 0, f1 = 0, n1 = 0;
  for (const auto& [bytes, times] : transfers) {
    const auto time = static_cast<double>(median(times)), weight = static_cast<double>(times.size());
    if (!(time > 0)) continue;
    const double f = 1 / time, n = static_cast<double>(bytes) / time;
    ff += weight * f * f, fn += weight * f * n, nn += weight * n * n, f1 += weight * f, n1 += weight * n;
  }
  if (!(ff > 0)) return std::nullopt;
  const double determinant = ff * nn - fn * fn;
  Line line{f1 / ff, 0};  // all sizes take equally long
  if (apart && determinant > 1e-9 * ff * nn) {
    const Line fitted{(f1 * nn - n1 * fn) / determinant, (n1 * ff - f1 * fn) / determinant};
    if (fitted.for_byte > 0) line = fitted;
  }
  return line.fixed > 0 ? std::optional(line) : std::nullopt;
}

// The calls of one iteration.
struct IterationCalls {
  double step_ns = 0, communication_ns = 0, fixed_ns = 0;
  double exposed_ns = 0;  // not hidden beside computation
  std::int64_t calls = 0;
};

struct Call {
  const Collective* collective;
  const Iteration* iteration;
  const Collective* barrier;  // before it, or nullptr
  // Of its transfer and that of its barrier, within the iteration and after the end of every call that ended before.
  std::int64_t own_ns = 0;

  std::int64_t end_ns() const {
    return std::min(collective->last_start_ns + collective->transfer_ns, iteration->start_ns + iteration->duration_ns);
  }
};

// Calls in flight together take turns, so each moment counts for the one that ends next.
void take_turns(std::vector<Call>& calls) {
  std::ranges::stable_sort(calls, {}, &Call::end_ns);
  std::int64_t taken_until = INT64_MIN;
  for (Call& call : calls) {
    const std::int64_t start_ns = call.collective->last_start_ns;
    call.own_ns = std::max<std::int64_t>(0, call.end_ns() - std::max(taken_until, start_ns));
    if (const Collective* barrier = call.barrier) {
      const std::int64_t until_ns = std::min(barrier->last_start_ns + barrier->transfer_ns, start_ns);
      call.own_ns += std::max<std::int64_t>(0, until_ns - std::max(taken_until, barrier->last_start_ns));
    }
    taken_until = call.end_ns();
  }
}

}  // namespace collective_cost_parts

std::vector<LinkUse> link_uses(const Collectives& collectives, std::span<const LinkEnd> ends) {
  using namespace collective_cost_parts;
  std::map<HostSet, LinkSamples> sets;
  for (const Collective& collective : collectives.matched) {
    const std::string& operation = collectives.operations[collective.operation];
    const bool whole = collective.calls.size() == collective.members;  // else a host may be unknown
    if (collective.of_range) continue;                                 // what a link carries is seen from its messages
    if (!collective.timed || !whole || collective.transfer_ns <= 0 || bus_factor(operation, collective.members) == 0) {
      continue;
    }
    HostSet key{.machines = {}, .on_devices = operation.starts_with("nccl")};
    for (const MemberCall& call : collective.calls) key.machines.push_back(ends[call.rank].machine);
    std::ranges::sort(key.machines);
    key.machines.erase(std::unique(key.machines.begin(), key.machines.end()), key.machines.end());
    if (key.machines.size() < 2 && !key.on_devices) continue;
    LinkSamples& samples = sets[key];
    if (samples.ranks.size() < collective.calls.size()) {
      samples.ranks.clear();
      for (const MemberCall& call : collective.calls) samples.ranks.push_back(call.rank);
    }
    if (collective.bytes >= least_large_collective) samples.large.push_back(&collective);
    if (collective.bytes <= most_small_bytes) samples.small_ns.push_back(collective.transfer_ns);
  }
  std::vector<LinkUse> uses;
  for (const auto& [key, samples] : sets) {
    LinkUse use = use_of(samples, collectives, ends);
    use.on_devices = key.on_devices;
    if (use.collectives >= fewest_large_collectives) uses.push_back(std::move(use));
  }
  return uses;
}

bool is_slow(const LinkUse& use, double rated) {
  using namespace collective_cost_parts;
  const double least_s = use.on_devices ? least_transfer_on_devices_s : least_transfer_s;
  if (static_cast<double>(use.bytes) < least_s * use.bytes_per_s) return false;
  if (rated > 0) return use.fastest_bytes_per_s < least_share_of_rate * rated;
  return use.hosts.size() > 1 && use.fastest_bytes_per_s < least_share_of_rate * least_network_rate;
}

std::optional<SmallCollectives> small_collectives(const Collectives& collectives,
                                                  std::span<const std::span<const Iteration>> iterations) {
  using namespace collective_cost_parts;
  // The operation that transferred longest, with or without barriers. Ranges have names of their own.
  const auto all_ranges = static_cast<std::uint32_t>(collectives.operations.size());
  const auto kind_of = [&](const Call& call) {
    const Collective& of = *call.collective;
    return std::tuple(of.of_range ? all_ranges : of.operation, of.members, call.barrier != nullptr);
  };
  std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, double> totals;
  std::map<std::uint64_t, const Collective*> barriers;  // of a communicator, after its last other collective
  const Collective* before_range = nullptr;             // of any communicator, after the last range
  std::vector<Call> calls;
  for (const Collective& collective : collectives.matched) {
    const std::string& operation = collectives.operations[collective.operation];
    const Collective*& last = collective.of_range ? before_range : barriers[collective.communicator];
    const Collective* barrier = std::exchange(last, nullptr);
    if (!collective.timed) continue;
    if (plain_operation(operation).ends_with("barrier")) last = before_range = &collective;
    const bool moves = collective.of_range || bus_factor(operation, collective.members) != 0;
    if (collective.bytes == 0 || !moves) continue;
    const MemberCall& first = collective.calls.front();
    const Iteration* iteration = iteration_at(iterations[first.rank], first.start_ns);
    const Call& call = calls.emplace_back(&collective, iteration, barrier);
    totals[kind_of(call)] += seconds_of(collective) + (barrier != nullptr ? seconds_of(*barrier) : 0);
  }
  const auto longest = std::ranges::max_element(totals, {}, [](const auto& entry) { return entry.second; });
  if (longest == totals.end()) return std::nullopt;
  std::erase_if(calls, [&](const Call& call) {
    return kind_of(call) != longest->first || call.iteration == nullptr || !call.iteration->finished;
  });
  std::map<std::uint64_t, std::vector<std::int64_t>> transfers;  // by size
  std::map<std::int64_t, IterationCalls> of_iteration;           // by number
  take_turns(calls);
  for (const Call& call : calls) transfers[call.collective->bytes].push_back(call.own_ns);
  const auto line = line_through(transfers);
  if (!line) return std::nullopt;
  const std::uint32_t operation = std::get<0>(longest->first);
  SmallCollectives small{.operation = operation == all_ranges ? "allreduce" : collectives.operations[operation]};
  std::vector<std::int64_t> sizes;
  for (const auto& [collective, iteration, barrier, own_ns] : calls) {
    IterationCalls& sum = of_iteration[iteration->number];
    sum.step_ns = static_cast<double>(iteration->duration_ns);
    sum.exposed_ns = static_cast<double>(iteration->phase_ns[static_cast<std::size_t>(Phase::communication)]);
    sum.communication_ns += static_cast<double>(own_ns);
    if (static_cast<double>(collective->bytes) >= line->half()) continue;
    sum.fixed_ns += std::min(line->fixed, static_cast<double>(own_ns));
    ++sum.calls;
    sizes.push_back(static_cast<std::int64_t>(collective->bytes));
  }
  constexpr double parts = 1e9;  // shares as whole numbers, for quantile()
  std::vector<std::int64_t> counts, of_step, of_communication;
  std::size_t warmup = std::max<std::size_t>(1, of_iteration.size() / 10);
  double steps_ns = 0, exposed_ns = 0;
  for (const auto& [number, sum] : of_iteration) {
    if (warmup > 0) {
      --warmup;
      continue;
    }
    counts.push_back(sum.calls);
    of_step.push_back(static_cast<std::int64_t>(sum.step_ns > 0 ? parts * sum.fixed_ns / sum.step_ns : 0));
    steps_ns += sum.step_ns;
    exposed_ns += sum.exposed_ns;
    of_communication.push_back(
        static_cast<std::int64_t>(sum.communication_ns > 0 ? parts * sum.fixed_ns / sum.communication_ns : 0));
  }
  if (counts.size() < fewest_tested) return std::nullopt;
  small.iterations = counts.size();
  small.share_of_step = static_cast<double>(quantile(of_step, nearly_all)) / parts;
  if (exposed_ns > 0 && !small.operation.starts_with("nccl")) small.exposed_share = exposed_ns / steps_ns;
  if (static_cast<double>(quantile(counts, nearly_all)) < fewest_small_calls ||
      small.share_of_step < least_fixed_cost) {
    return std::nullopt;
  }
  small.calls = static_cast<double>(median(counts));
  small.median_bytes = static_cast<std::uint64_t>(median(std::move(sizes)));
  small.fixed_ns = static_cast<std::int64_t>(line->fixed);
  small.half_bytes = std::isfinite(line->half()) ? static_cast<std::uint64_t>(line->half()) : 0;
  small.share_of_communication = static_cast<double>(median(of_communication)) / parts;
  return small;
}

}  // namespace paceline::analysis
