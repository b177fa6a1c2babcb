// SPDX-License-Identifier: Apache-2.0
#include "analysis/communication/link_times.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "analysis/phases/selection.h"
#include "analysis/statistics/statistics.h"

namespace paceline::analysis {
namespace link_time_parts {

constexpr double alike = 0.01;  // relative difference of the bytes of two links
constexpr std::size_t fewest_links = 3;

bool is_timed(const Message& message) { return message.matched() && message.receive->completed; }

// When the receiver was blocked in a message that had been sent, and what it carried. A receiver that waits for several
// messages at once is blocked in all of them, so that only the union of the intervals is time.
struct Blocked {
  std::int64_t from_ns = 0, to_ns = 0;
  std::uint64_t bytes = 0;
  auto operator<=>(const Blocked&) const = default;
};

Blocked blocked_in(const Message& message) {
  const std::int64_t end = message.receive->end_ns;
  return {std::min(end, std::max(message.send->start_ns, message.receive->blocked_from_ns)), end, message.send->bytes};
}

// The union of intervals that are sorted by their starts.
std::int64_t union_ns(std::span<const Blocked> sorted) {
  std::int64_t sum = 0, until = std::numeric_limits<std::int64_t>::min();
  for (const Blocked& blocked : sorted) {
    sum += std::max<std::int64_t>(blocked.to_ns - std::max(blocked.from_ns, until), 0);
    until = std::max(until, blocked.to_ns);
  }
  return sum;
}

struct LinkSum {
  std::vector<Blocked> blocked;
  double bytes = 0;
  double ns() const {
    std::vector<Blocked> sorted = blocked;
    std::ranges::sort(sorted);
    return static_cast<double>(union_ns(sorted));
  }
};
using LinkSums = std::map<RankLink, LinkSum>;

struct IterationSums {
  LinkSums links;
  double step_ns = 0, messages = 0;
};

// The links that have messages in most iterations, with the same bytes as the largest number of others.
std::vector<RankLink> comparable_links(const std::map<std::int64_t, IterationSums>& iterations, double& bytes) {
  std::map<RankLink, std::vector<std::int64_t>> of_link;
  for (const auto& [number, sums] : iterations) {
    for (const auto& [link, sum] : sums.links) of_link[link].push_back(static_cast<std::int64_t>(sum.bytes));
  }
  std::vector<std::pair<double, RankLink>> sizes;
  for (auto& [link, values] : of_link) {
    if (2 * values.size() > iterations.size()) sizes.emplace_back(static_cast<double>(median(values)), link);
  }
  std::ranges::sort(sizes);
  std::vector<RankLink> best;
  for (std::size_t first = 0; first < sizes.size(); ++first) {
    std::vector<RankLink> links;
    for (std::size_t i = first; i < sizes.size() && sizes[i].first <= (1 + alike) * sizes[first].first; ++i) {
      links.push_back(sizes[i].second);
    }
    if (links.size() > best.size()) best = std::move(links), bytes = sizes[first].first;
  }
  std::ranges::sort(best);
  return best;
}

}  // namespace link_time_parts

std::vector<LinkTimes> link_times(const Messages& messages, std::span<const std::span<const Iteration>> iterations,
                                  std::span<const LinkEnd> ends, double clock_error_ns) {
  using namespace link_time_parts;
  std::vector<LinkTimes> kinds;
  for (const bool between_hosts : {false, true}) {
    std::map<std::int64_t, IterationSums> of_iteration;  // by number
    for (const Message& message : messages.all) {
      if (!is_timed(message)) continue;
      if ((ends[message.sender].machine != ends[message.receiver].machine) != between_hosts) continue;
      const Iteration* iteration = iteration_at(iterations[message.receiver], message.receive->start_ns);
      if (iteration == nullptr || !iteration->finished) continue;
      IterationSums& sums = of_iteration[iteration->number];
      LinkSum& sum = sums.links[{message.sender, message.receiver}];
      sum.blocked.push_back(blocked_in(message));
      sum.bytes += static_cast<double>(message.send->bytes);
      sums.step_ns = static_cast<double>(iteration->duration_ns);
      ++sums.messages;
    }
    LinkTimes kind;
    kind.between_hosts = between_hosts;
    kind.links = comparable_links(of_iteration, kind.bytes);
    if (kind.links.size() < fewest_links) continue;
    LatenessTable table;
    std::vector<double> times(kind.links.size());
    std::size_t warmup = std::max<std::size_t>(1, of_iteration.size() / 10);
    for (const auto& [number, sums] : of_iteration) {
      const bool whole =
          std::ranges::all_of(kind.links, [&](const RankLink& link) { return sums.links.contains(link); });
      if (!whole) continue;
      if (warmup > 0) {
        --warmup;
        continue;
      }
      for (std::size_t i = 0; i < times.size(); ++i) times[i] = sums.links.at(kind.links[i]).ns();
      LatenessRow row;
      // Nobody waits here: the cost of a slow link is the time by which it is behind the others.
      add_collective(row, times, std::vector<double>(times.size(), 0));
      row.others_wait_ns = row.behind_ns;
      row.step_ns = sums.step_ns;
      row.collectives = static_cast<std::size_t>(sums.messages / static_cast<double>(sums.links.size()));
      add_iteration(table, number, row);
      kind.times.resize(times.size());
      for (std::size_t i = 0; i < times.size(); ++i) kind.times[i] += 1e-9 * times[i];
    }
    for (double& time : kind.times) time /= static_cast<double>(std::max<std::size_t>(table.iterations(), 1));
    kind.test = test_lateness(table, clock_error_ns);
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

// The rate of a direction is that of up to 20 parts of the run: bytes ÷ the time that receivers were blocked in
// messages that had been sent. Bytes may have arrived before, so that a link is not called slow for a receiver that
// comes late.
std::vector<LinkUse> link_uses(const Messages& messages, std::span<const LinkEnd> ends) {
  using namespace link_time_parts;
  constexpr std::size_t most_parts = 20;
  constexpr std::uint64_t least_bytes = 64 * 1024;  // of a message
  struct Samples {
    std::set<std::uint32_t> ranks;
    std::map<std::string, std::vector<Blocked>> by_sender;  // by machine
  };
  std::map<std::pair<std::string, std::string>, Samples> pairs;  // of machines
  for (const Message& message : messages.all) {
    if (!is_timed(message) || message.send->bytes < least_bytes) continue;
    const std::string &from = ends[message.sender].machine, &to = ends[message.receiver].machine;
    if (from == to) continue;
    Samples& samples = pairs[std::minmax(from, to)];
    samples.ranks.insert({message.sender, message.receiver});
    samples.by_sender[from].push_back(blocked_in(message));
  }
  std::vector<LinkUse> uses;
  for (auto& [machines, samples] : pairs) {
    std::vector<std::int64_t> rates, sizes;
    for (auto& [sender, blocked] : samples.by_sender) {
      std::ranges::sort(blocked);
      for (const Blocked& each : blocked) sizes.push_back(static_cast<std::int64_t>(each.bytes));
      const std::size_t size = (blocked.size() + most_parts - 1) / most_parts;
      for (std::size_t first = 0; first < blocked.size(); first += size) {
        const std::span part = std::span(blocked).subspan(first, std::min(size, blocked.size() - first));
        double bytes = 0;
        for (const Blocked& each : part) bytes += static_cast<double>(each.bytes);
        const auto ns = static_cast<double>(std::max<std::int64_t>(union_ns(part), 1));
        rates.push_back(static_cast<std::int64_t>(1e9 * bytes / ns));
      }
    }
    if (rates.size() < fewest_large_collectives) continue;
    LinkUse use{.hosts = {}, .ranks = {samples.ranks.begin(), samples.ranks.end()}};
    for (const std::uint32_t rank : use.ranks) {
      if (std::ranges::find(use.hosts, ends[rank].host) == use.hosts.end()) use.hosts.push_back(ends[rank].host);
    }
    use.messages = true;
    use.collectives = sizes.size();
    use.bytes = static_cast<std::uint64_t>(median(std::move(sizes)));
    use.fastest_bytes_per_s = static_cast<double>(quantile(rates, 0.9));
    use.bytes_per_s = static_cast<double>(median(std::move(rates)));
    uses.push_back(std::move(use));
  }
  return uses;
}

}  // namespace paceline::analysis
