#include "analysis/importers/clock_alignment.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace paceline::analysis {
namespace {

// Signed distance of two counters, exact where it is below 2^53.
double distance(std::uint64_t from, std::uint64_t to) {
  return static_cast<double>(static_cast<std::int64_t>(to - from));
}

// The same for nanoseconds of a system clock, which in a damaged file may be any.
double distance(std::int64_t from, std::int64_t to) {
  return distance(static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(to));
}

// A clock domain's own time: nanoseconds since its base tick. `to_run` maps it to the reference domain's.
struct Domain {
  std::uint64_t base_ticks = 0;
  double ns_per_tick = 1;
  double first_ns = 0, last_ns = 0;  // first and last event of its processes
  double utc_at_base_ns = 0;         // minus utc_epoch_ns, to keep digits

  struct Line {
    double offset = 0, rate = 1;  // run time = offset + rate × own time
  } to_run;
  double error_ns = 0;
  bool placed = false, by_utc = false;

  double time(std::uint64_t ticks) const { return distance(base_ticks, ticks) * ns_per_tick; }
};

double fitted_ns_per_tick(const std::vector<const ClockReadings*>& processes, std::uint64_t base) {
  const ClockReadings& first = *processes.front();
  if (first.ticks_are_ns) return 1;
  const bool plausible = first.ticks_per_second > 1e3 && first.ticks_per_second < 1e12;
  const double nominal = plausible ? 1e9 / first.ticks_per_second : 1;
  std::optional<std::int64_t> base_ns;
  double weights = 0, x_sum = 0, y_sum = 0, xx = 0, xy = 0;
  double least = 0, most = 0;
  const auto each_pair = [&](auto&& visit) {
    for (const ClockReadings* process : processes) {
      for (const ClockPairReading& pair : process->pairs) {
        if (!base_ns) base_ns = pair.monotonic_ns;
        // Preempted readings have a wide bracket; 20 ns is what an undisturbed one is good for.
        const double half_width_ns = 0.5 * static_cast<double>(pair.width) * nominal;
        visit(distance(base, pair.ticks), distance(*base_ns, pair.monotonic_ns),
              1 / (half_width_ns * half_width_ns + 20.0 * 20.0));
      }
    }
  };
  bool any = false;
  each_pair([&](double x, double y, double w) {
    weights += w, x_sum += w * x, y_sum += w * y;
    least = any ? std::min(least, x) : x;
    most = any ? std::max(most, x) : x;
    any = true;
  });
  // Two readings less than 10 ms apart know the frequency no better than the recorder's own calibration.
  if (!any || (most - least) * nominal < 10e6) return nominal;
  each_pair([&](double x, double y, double w) {
    xx += w * (x - x_sum / weights) * (x - x_sum / weights);
    xy += w * (x - x_sum / weights) * (y - y_sum / weights);
  });
  const double fitted = xy / xx;
  return fitted > 0.5 * nominal && fitted < 2 * nominal ? fitted : nominal;
}

// The pair that ties a process to UTC: the one nearest to its start, else the header's.
ClockPairReading utc_pair(const ClockReadings& process) {
  if (process.pairs.empty()) return {process.start_ticks, 0, process.start_utc_ns, 0};
  return *std::ranges::min_element(process.pairs, {}, [&](const ClockPairReading& pair) {
    return std::abs(distance(process.start_ticks, pair.ticks));
  });
}

// One round trip between two domains: at `own_ns` of ours it was own_ns + offset_ns there.
struct Trip {
  double own_ns = 0, offset_ns = 0, error_ns = 0;
};

struct Link {
  std::optional<Trip> first, last;  // the shortest at MPI_Init and at MPI_Finalize; those between count as first
};

void keep_shortest(std::optional<Trip>& best, const Trip& trip) {
  if (!best || trip.error_ns < best->error_ns) best = trip;
}

// Our time to the other domain's, and the bound of its error while our processes run.
Domain::Line line_through(const Link& link, const Domain& own, double& error_ns) {
  if (link.first && link.last) {
    const double apart = link.last->own_ns - link.first->own_ns;
    const double errors = link.first->error_ns + link.last->error_ns;
    // A drift known less well than the bound that holds for any two clocks is no knowledge.
    if (apart > 0 && errors / apart < drift_bound) {
      const double drift = (link.last->offset_ns - link.first->offset_ns) / apart;
      for (const double t : {own.first_ns, own.last_ns, link.first->own_ns, link.last->own_ns}) {
        const double share = (t - link.first->own_ns) / apart;
        error_ns =
            std::max(error_ns, std::abs(1 - share) * link.first->error_ns + std::abs(share) * link.last->error_ns);
      }
      return {link.first->offset_ns - drift * link.first->own_ns, 1 + drift};
    }
  }
  std::optional<Trip> best = link.first;
  if (link.last) keep_shortest(best, *link.last);
  error_ns = best->error_ns +
             drift_bound * std::max(std::abs(own.first_ns - best->own_ns), std::abs(own.last_ns - best->own_ns));
  return {best->offset_ns, 1};
}

Domain::Line after(const Domain::Line& second, const Domain::Line& first) {
  return {second.offset + second.rate * first.offset, second.rate * first.rate};
}
Domain::Line inverse(const Domain::Line& line) { return {-line.offset / line.rate, 1 / line.rate}; }

}  // namespace

std::vector<AlignedClock> align_clocks(std::span<const ClockReadings> processes) {
  if (processes.empty()) return {};
  std::map<std::string, std::size_t> index;
  std::vector<Domain> domains;
  std::vector<std::size_t> domain_of;
  std::map<int, std::size_t> domain_of_rank;
  std::vector<std::vector<const ClockReadings*>> members;
  for (const ClockReadings& process : processes) {
    const auto [found, fresh] = index.try_emplace(process.domain, domains.size());
    if (fresh) domains.emplace_back(), members.emplace_back();
    domain_of.push_back(found->second);
    domain_of_rank.try_emplace(process.rank, found->second);
    members[found->second].push_back(&process);
  }
  const std::int64_t utc_epoch_ns = processes.front().start_utc_ns;
  for (std::size_t d = 0; d < domains.size(); ++d) {
    Domain& domain = domains[d];
    domain.base_ticks = members[d].front()->start_ticks;
    domain.ns_per_tick = fitted_ns_per_tick(members[d], domain.base_ticks);
    const ClockPairReading pair = utc_pair(*members[d].front());
    domain.utc_at_base_ns = distance(utc_epoch_ns, pair.utc_ns) - domain.time(pair.ticks);
    for (const ClockReadings* process : members[d]) {
      domain.first_ns = std::min(domain.first_ns, domain.time(process->start_ticks));
      domain.last_ns = std::max(domain.last_ns, domain.time(process->end_ticks));
    }
  }

  std::map<std::pair<std::size_t, std::size_t>, Link> links;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    for (const ClockExchangeReading& exchange : processes[p].exchanges) {
      const auto peer = domain_of_rank.find(exchange.peer);
      if (peer == domain_of_rank.end() || peer->second == domain_of[p]) continue;
      const Domain &own = domains[domain_of[p]], &other = domains[peer->second];
      const double sent = own.time(exchange.send_ticks), received = own.time(exchange.receive_ticks);
      if (received < sent) continue;
      const double middle = 0.5 * (sent + received);
      Link& link = links[{domain_of[p], peer->second}];
      keep_shortest(exchange.phase == 1 ? link.last : link.first,
                    {middle, other.time(exchange.peer_ticks) - middle, 0.5 * (received - sent)});
    }
  }

  const std::size_t reference = domain_of_rank.begin()->second;
  domains[reference].placed = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [ends, link] : links) {
      Domain &own = domains[ends.first], &other = domains[ends.second];
      if (own.placed == other.placed) continue;
      double error_ns = 0;
      const Domain::Line own_to_other = line_through(link, own, error_ns);
      Domain &known = own.placed ? own : other, &fresh = own.placed ? other : own;
      fresh.to_run = after(known.to_run, own.placed ? inverse(own_to_other) : own_to_other);
      fresh.error_ns = known.error_ns + error_ns;
      fresh.placed = changed = true;
    }
  }
  for (Domain& domain : domains) {
    if (domain.placed) continue;
    domain.by_utc = true;
    domain.error_ns = utc_error_ns;
    domain.to_run = {domain.utc_at_base_ns - domains[reference].utc_at_base_ns, 1};
  }

  std::vector<AlignedClock> clocks;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    const ClockReadings& process = processes[p];
    const Domain& domain = domains[domain_of[p]];
    AlignedClock clock;
    const double start = domain.time(process.start_ticks);
    clock.start_ns = domain.to_run.offset + domain.to_run.rate * start;
    clock.ns_per_tick = domain.to_run.rate * domain.ns_per_tick;
    clock.error_ns = domain.error_ns;
    clock.by_utc = domain.by_utc;
    clock.process_start_ns = clock.start_ns;
    if (process.process_start_utc_ns != 0) {
      const ClockPairReading pair = utc_pair(process);
      const double process_start = domain.time(pair.ticks) - distance(process.process_start_utc_ns, pair.utc_ns);
      clock.process_start_ns = domain.to_run.offset + domain.to_run.rate * std::min(process_start, start);
    }
    clocks.push_back(clock);
  }
  return clocks;
}

}  // namespace paceline::analysis
