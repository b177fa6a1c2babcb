#include "analysis/metrics/link_times.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "analysis/metrics/selection.h"
#include "analysis/metrics/statistics.h"

namespace paceline::analysis {
namespace link_time_parts {

constexpr double alike = 0.01;  // relative difference of the bytes of two links
constexpr std::size_t fewest_links = 3;

// From the moment at which both sides are there.
std::int64_t transfer_ns(const Message& message) {
  return std::max<std::int64_t>(
      message.receive->end_ns - std::max(message.send->start_ns, message.receive->blocked_from_ns), 0);
}

bool is_timed(const Message& message) { return message.matched() && message.receive->completed; }

struct LinkSum {
  double ns = 0, bytes = 0;
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
      sum.ns += static_cast<double>(transfer_ns(message));
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
      for (std::size_t i = 0; i < times.size(); ++i) times[i] = sums.links.at(kind.links[i]).ns;
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

std::vector<LinkUse> link_uses(const Messages& messages, std::span<const LinkEnd> ends) {
  using namespace link_time_parts;
  struct Samples {
    std::set<std::uint32_t> ranks;
    std::vector<std::int64_t> rates, sizes;
  };
  std::map<std::pair<std::string, std::string>, Samples> pairs;  // of machines
  for (const Message& message : messages.all) {
    if (!is_timed(message) || message.send->bytes < least_large_collective || transfer_ns(message) <= 0) continue;
    const std::string &from = ends[message.sender].machine, &to = ends[message.receiver].machine;
    if (from == to) continue;
    Samples& samples = pairs[std::minmax(from, to)];
    samples.ranks.insert({message.sender, message.receiver});
    const auto bytes = static_cast<double>(message.send->bytes);
    samples.rates.push_back(static_cast<std::int64_t>(bytes / (1e-9 * static_cast<double>(transfer_ns(message)))));
    samples.sizes.push_back(static_cast<std::int64_t>(message.send->bytes));
  }
  std::vector<LinkUse> uses;
  for (auto& [machines, samples] : pairs) {
    if (samples.rates.size() < fewest_large_collectives) continue;
    LinkUse use{.hosts = {}, .ranks = {samples.ranks.begin(), samples.ranks.end()}};
    for (const std::uint32_t rank : use.ranks) {
      if (std::ranges::find(use.hosts, ends[rank].host) == use.hosts.end()) use.hosts.push_back(ends[rank].host);
    }
    use.messages = true;
    use.collectives = samples.rates.size();
    use.bytes = static_cast<std::uint64_t>(median(std::move(samples.sizes)));
    use.fastest_bytes_per_s = static_cast<double>(quantile(samples.rates, 0.9));
    use.bytes_per_s = static_cast<double>(median(std::move(samples.rates)));
    uses.push_back(std::move(use));
  }
  return uses;
}

}  // namespace paceline::analysis
