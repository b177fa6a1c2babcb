// SPDX-License-Identifier: Apache-2.0
#include "analysis/clocks/alignment.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

namespace paceline::analysis {
namespace {

// The signed difference of two counters, exact if it is below 2^53.
double distance(std::uint64_t from, std::uint64_t to) {
  return static_cast<double>(static_cast<std::int64_t>(to - from));
}

// The same for nanoseconds of a system clock, which can have any value in a damaged file.
double distance(std::int64_t from, std::int64_t to) {
  return distance(static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(to));
}

// A clock domain's own time: nanoseconds since its base tick. `to_run` maps it to the reference domain's.
struct Domain {
  std::uint64_t base_ticks = 0;
  double ns_per_tick = 1;
  double first_ns = 0, last_ns = 0;  // first and last event of its processes

  PiecewiseLine to_run;
  double error_ns = 0;
  double counter_error_ns = 0;  // between CPUs, the largest that any process recorded
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
        // Preempted readings have a wide bracket. An undisturbed reading is accurate to 20 ns.
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
  // Two readings less than 10 ms apart give the frequency no better than the recorder's own calibration.
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

// At `own_ns` of this domain the other domain's time was own_ns + offset_ns, ± error_ns. Made from one round trip or
// from all trips of a round.
struct Tie {
  double own_ns = 0, offset_ns = 0, error_ns = 0;
};

constexpr double longest_round_ns = 50e6;  // trips further apart belong to different rounds

// Each trip gives a range for the offset. The true offset is in all of them, apart from the drift between the trips.
Tie common_range(std::span<const Tie> trips) {
  const Tie& shortest = *std::ranges::min_element(trips, {}, &Tie::error_ns);
  double low = -std::numeric_limits<double>::infinity(), high = -low;
  for (const Tie& trip : trips) {
    const double slack = trip.error_ns + drift_bound * std::abs(trip.own_ns - shortest.own_ns);
    low = std::max(low, trip.offset_ns - slack);
    high = std::min(high, trip.offset_ns + slack);
  }
  if (low > high) return shortest;  // the clocks drift more than any clock should
  return {shortest.own_ns, 0.5 * (low + high), 0.5 * (high - low)};
}

// Whether one line may go through both. A drift whose error exceeds the bound for any two clocks is limited to that
// bound.
bool fit_together(const Tie& left, const Tie& right) {
  const double apart = right.own_ns - left.own_ns;
  const double change = std::abs(right.offset_ns - left.offset_ns);
  const double errors = left.error_ns + right.error_ns;
  return change <= drift_bound * apart || (errors < drift_bound * apart && change < 0.01 * apart);
}

// A drift that wanders by w takes the middle of a piece off the straight line by at most w × half its length.
double error_between(const Tie& left, const Tie& right) {
  return std::max(left.error_ns, right.error_ns) + wander_bound * 0.5 * (right.own_ns - left.own_ns);
}

// How much larger the error of a round is than that of the line between two others at its time; negative if smaller.
double excess(const Tie& round, const Tie& left, const Tie& right) {
  const double before = round.own_ns - left.own_ns, after = right.own_ns - round.own_ns;
  const double straight = (left.error_ns * after + right.error_ns * before) / (before + after);
  return round.error_ns - straight - wander_bound * 2 * before * after / (before + after);
}

// Removes rounds whose error is larger than that of the line between their neighbours, the worst first.
void drop_the_useless(std::vector<Tie>& rounds) {
  while (rounds.size() > 2) {
    std::size_t worst = 1;
    double most = 0;
    for (std::size_t i = 1; i + 1 < rounds.size(); ++i) {
      const double by = excess(rounds[i], rounds[i - 1], rounds[i + 1]);
      if (by > most) most = by, worst = i;
    }
    if (most <= 0) return;
    rounds.erase(rounds.begin() + static_cast<std::ptrdiff_t>(worst));
  }
}

// The drift at one end of a run, where the line is extrapolated beyond its last round, and the error of that drift.
struct Drift {
  double rate = 0, uncertainty = drift_bound;
};
constexpr double drift_span_ns = 30e9;  // the drift is computed over the last half minute

Drift drift_at(const Tie& end, std::span<const Tie> from_the_end) {
  Drift drift;
  for (const Tie& other : from_the_end) {
    const double apart = std::abs(other.own_ns - end.own_ns);
    const double uncertainty = (other.error_ns + end.error_ns) / apart + wander_bound;
    if (apart > 0 && uncertainty < drift.uncertainty) {
      drift = {(other.offset_ns - end.offset_ns) / (other.own_ns - end.own_ns), uncertainty};
    }
    if (apart > drift_span_ns) break;
  }
  return drift;
}

// The error at the time of `beyond` of the line that is extrapolated from `end`, away from the other rounds.
double led_on(const Tie& end, std::span<const Tie> from_the_end, const Tie& beyond) {
  return end.error_ns + drift_at(end, from_the_end).uncertainty * std::abs(beyond.own_ns - end.own_ns);
}

// One tie for each round, by time. Of two ties that contradict each other only the better one is kept.
std::vector<Tie> rounds_of(std::vector<Tie> trips) {
  std::ranges::sort(trips, {}, &Tie::own_ns);
  std::vector<Tie> rounds;
  for (std::size_t first = 0; first < trips.size();) {
    std::size_t last = first + 1;
    while (last < trips.size() && trips[last].own_ns - trips[last - 1].own_ns < longest_round_ns) ++last;
    const Tie round = common_range(std::span(trips).subspan(first, last - first));
    first = last;
    while (!rounds.empty() && !fit_together(rounds.back(), round) && rounds.back().error_ns > round.error_ns) {
      rounds.pop_back();
    }
    if (rounds.empty() || fit_together(rounds.back(), round)) rounds.push_back(round);
  }
  drop_the_useless(rounds);
  // A tie at an end is removed if the line of the others, extrapolated to it, has a smaller error.
  while (rounds.size() > 2 && led_on(rounds[1], std::span(rounds).subspan(1), rounds[0]) < rounds[0].error_ns) {
    rounds.erase(rounds.begin());
  }
  for (;;) {
    const std::vector<Tie> backward(rounds.rbegin(), rounds.rend());
    if (rounds.size() < 3 || led_on(backward[1], std::span(backward).subspan(1), backward[0]) >= backward[0].error_ns) {
      return rounds;
    }
    rounds.pop_back();
  }
}

// From this domain's time to the other domain's, with the bound of its error while this domain's processes run.
PiecewiseLine line_through(const std::vector<Tie>& rounds, const Domain& own, double& error_ns) {
  const std::vector<Tie> backward(rounds.rbegin(), rounds.rend());
  const Drift before = drift_at(rounds.front(), rounds), after = drift_at(rounds.back(), backward);
  error_ns =
      std::max(rounds.front().error_ns + before.uncertainty * std::max(rounds.front().own_ns - own.first_ns, 0.0),
               rounds.back().error_ns + after.uncertainty * std::max(own.last_ns - rounds.back().own_ns, 0.0));
  std::vector<PiecewiseLine::Knot> knots;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    if (i > 0) error_ns = std::max(error_ns, error_between(rounds[i - 1], rounds[i]));
    knots.push_back({rounds[i].own_ns, rounds[i].own_ns + rounds[i].offset_ns});
  }
  return {std::move(knots), 1 + before.rate, 1 + after.rate};
}

// A domain's own time to UTC, minus `epoch_ns` to keep digits: through its clock pairs, about one a second.
PiecewiseLine line_to_utc(const std::vector<const ClockReadings*>& processes, const Domain& domain,
                          std::int64_t epoch_ns) {
  std::vector<ClockPairReading> pairs;
  for (const ClockReadings* process : processes) {
    pairs.insert(pairs.end(), process->pairs.begin(), process->pairs.end());
  }
  if (pairs.empty()) pairs.push_back(utc_pair(*processes.front()));
  std::ranges::sort(pairs, {}, [&](const ClockPairReading& pair) { return domain.time(pair.ticks); });
  std::vector<PiecewiseLine::Knot> knots;
  for (const ClockPairReading& pair : pairs) {
    const PiecewiseLine::Knot knot{domain.time(pair.ticks), distance(epoch_ns, pair.utc_ns)};
    // The system slews its clock by at most 500 ppm. A larger change was a step or an interrupted reading.
    if (!knots.empty() && (knot.x - knots.back().x < 0.5e9 ||
                           std::abs((knot.y - knots.back().y) / (knot.x - knots.back().x) - 1) > 1e-3)) {
      continue;
    }
    knots.push_back(knot);
  }
  return {std::move(knots), 1, 1};
}

double utc_error_ns(const ClockReadings& process) {
  return process.utc_error_us < 0 ? unset_utc_error_ns : 1e3 * static_cast<double>(process.utc_error_us);
}

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
    for (const ClockReadings* process : members[d]) {
      domain.counter_error_ns = std::max(domain.counter_error_ns, process->counter_error_ns);
      domain.first_ns = std::min(domain.first_ns, domain.time(process->start_ticks));
      domain.last_ns = std::max(domain.last_ns, domain.time(process->end_ticks));
    }
  }

  std::map<std::pair<std::size_t, std::size_t>, std::vector<Tie>> links;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    for (const ClockExchangeReading& exchange : processes[p].exchanges) {
      const auto peer = domain_of_rank.find(exchange.peer);
      if (peer == domain_of_rank.end() || peer->second == domain_of[p]) continue;
      const Domain &own = domains[domain_of[p]], &other = domains[peer->second];
      const double sent = own.time(exchange.send_ticks), received = own.time(exchange.receive_ticks);
      if (received < sent) continue;
      const double middle = 0.5 * (sent + received);
      links[{domain_of[p], peer->second}].push_back(
          {middle, other.time(exchange.peer_ticks) - middle, 0.5 * (received - sent)});
    }
  }

  const std::size_t reference = domain_of_rank.begin()->second;
  domains[reference].placed = true;
  domains[reference].error_ns = domains[reference].counter_error_ns;
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [ends, trips] : links) {
      Domain &own = domains[ends.first], &other = domains[ends.second];
      if (own.placed == other.placed) continue;
      double error_ns = 0;
      const PiecewiseLine own_to_other = line_through(rounds_of(trips), own, error_ns);
      Domain &known = own.placed ? own : other, &fresh = own.placed ? other : own;
      fresh.to_run = after(known.to_run, own.placed ? own_to_other.inverse() : own_to_other);
      fresh.error_ns = known.error_ns + error_ns + fresh.counter_error_ns;
      fresh.placed = changed = true;
    }
  }
  const PiecewiseLine from_utc = line_to_utc(members[reference], domains[reference], utc_epoch_ns).inverse();
  for (std::size_t d = 0; d < domains.size(); ++d) {
    Domain& domain = domains[d];
    if (domain.placed) continue;
    domain.by_utc = true;
    domain.error_ns = utc_error_ns(*members[d].front()) + utc_error_ns(*members[reference].front());
    domain.to_run = after(from_utc, line_to_utc(members[d], domain, utc_epoch_ns));
  }

  std::vector<AlignedClock> clocks;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    const ClockReadings& process = processes[p];
    const Domain& domain = domains[domain_of[p]];
    AlignedClock clock;
    const double start = domain.time(process.start_ticks);
    clock.time = after(domain.to_run, PiecewiseLine({{0, start}}, domain.ns_per_tick, domain.ns_per_tick));
    clock.error_ns = domain.error_ns;
    clock.by_utc = domain.by_utc;
    clock.process_start_ns = clock.time(0);
    if (process.process_start_utc_ns != 0) {
      const ClockPairReading pair = utc_pair(process);
      const double process_start = domain.time(pair.ticks) - distance(process.process_start_utc_ns, pair.utc_ns);
      clock.process_start_ns = domain.to_run(std::min(process_start, start));
    }
    clocks.push_back(clock);
  }
  return clocks;
}

}  // namespace paceline::analysis
