// SPDX-License-Identifier: Apache-2.0
#include "analysis/clocks/trace_alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "analysis/clocks/alignment.h"
#include "analysis/communication/collectives.h"
#include "analysis/text/lists.h"
#include "analysis/text/numbers.h"
#include "analysis/trace/parallel.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace trace_clocks {

constexpr std::size_t most_ties = 1'000'000;
constexpr std::size_t least_ties_for_drift = 30;
constexpr std::int64_t longest_time_ns = 4'000'000'000'000'000'000;

// Hostile files hold any time: sums and differences stay within what the model can hold.
std::int64_t bounded_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) sum = a < 0 ? -longest_time_ns : longest_time_ns;
  return std::clamp(sum, -longest_time_ns, longest_time_ns);
}
std::int64_t bounded_difference(std::int64_t a, std::int64_t b) {
  return bounded_sum(std::clamp(a, -longest_time_ns, longest_time_ns),
                     -std::clamp(b, -longest_time_ns, longest_time_ns));
}

// From a rank's own time to the time of another rank: time + shift + drift × (time − pivot).
struct Clock {
  std::int64_t shift_ns = 0, pivot_ns = 0;
  double drift = 0;

  std::int64_t operator()(std::int64_t time) const {
    const std::int64_t shifted = bounded_sum(time, shift_ns);
    if (drift == 0) return shifted;
    return bounded_sum(shifted, std::llround(drift * static_cast<double>(bounded_difference(time, pivot_ns))));
  }
};

// inner goes from a rank's time to that of a second one, outer from there to that of a third one. Products of two
// drifts are below 1e-8 and left out.
Clock after(const Clock& outer, const Clock& inner) {
  return {bounded_sum(outer(bounded_sum(inner.pivot_ns, inner.shift_ns)), -inner.pivot_ns), inner.pivot_ns,
          inner.drift + outer.drift};
}

Clock inverse(const Clock& clock) {
  return {-clock.shift_ns, bounded_sum(clock.pivot_ns, clock.shift_ns), -clock.drift};
}

// A collective that two ranks took part in, in each one's own time.
struct Tie {
  std::int64_t start_ns = 0, end_ns = 0;              // of the rank with the higher index
  std::int64_t other_start_ns = 0, other_end_ns = 0;  // of the one with the lower index
};

using Pair = std::pair<std::uint32_t, std::uint32_t>;  // indices of ranks, the lower first
using Ties = std::map<Pair, std::vector<Tie>>;

// True if no rank can leave the operation before all have entered it.
bool synchronises(std::string_view operation) {
  const std::string name = plain_operation(operation);
  const auto is = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  return is("barrier") || is("allreduce") || is("allgather") || is("alltoall") || is("reducescatter");
}

// The first rank of each collective is tied to the others. Calls without a communicator were matched by their order
// alone: they may belong to different groups of ranks.
Ties ties_of(const Collectives& collectives, bool without_communicator) {
  std::vector<bool> synchronising;
  for (const std::string& operation : collectives.operations) synchronising.push_back(synchronises(operation));
  const auto wanted = [&](const Collective& one) {
    return one.timed && synchronising[one.operation] && (one.communicator != 0 || without_communicator);
  };
  std::size_t calls = 0;
  for (const Collective& one : collectives.matched) calls += wanted(one) ? one.calls.size() : 0;
  const std::size_t stride = calls / most_ties + 1;
  Ties ties;
  for (std::size_t c = 0; c < collectives.matched.size(); c += stride) {
    const Collective& one = collectives.matched[c];
    if (!wanted(one)) continue;
    const MemberCall* first = nullptr;
    for (const MemberCall& call : one.calls) {
      if (call.blocked_from_ns != call.start_ns) continue;  // its end is when somebody looked
      if (first == nullptr) {
        first = &call;
      } else {
        ties[{first->rank, call.rank}].push_back({call.start_ns, call.end_ns, first->start_ns, first->end_ns});
      }
    }
  }
  return ties;
}

// Sorts the values. `share` from 0 to 1.
double quantile(std::vector<double>& values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

double median(std::vector<double> values) { return quantile(values, 0.5); }

struct Fit {
  Clock clock;  // from the time of the pair's higher rank to that of the lower one
  double error_ns = 0;
};

// 95 % of the values are nearer to 0 than this.
double spread(std::vector<double> values) {
  for (double& value : values) value = std::abs(value);
  return quantile(values, 0.95);
}

// The slope of the resistant line through points that are sorted by x; 0 unless it is beyond what scatter explains.
double resistant_slope(const std::vector<double>& x, const std::vector<double>& y) {
  const std::size_t third = x.size() / 3;
  if (x.size() < least_ties_for_drift) return 0;
  const auto left = static_cast<std::ptrdiff_t>(third), right = static_cast<std::ptrdiff_t>(x.size() - third);
  const double run = median({x.begin() + right, x.end()}) - median({x.begin(), x.begin() + left});
  if (run <= 0) return 0;
  // A slope spreads the points of a third, which makes its median less exact. The medians are therefore taken again
  // from what the slope leaves.
  double slope = 0;
  std::vector<double> rest = y;
  for (int pass = 0; pass < 3; ++pass) {
    const double more =
        (median({rest.begin() + right, rest.end()}) - median({rest.begin(), rest.begin() + left})) / run;
    slope += more;
    for (std::size_t i = 0; i < x.size(); ++i) rest[i] -= more * x[i];
  }
  // The median absolute deviation from the line, from which follows the standard error of the medians.
  const double middle = median(rest);
  for (double& value : rest) value = std::abs(value - middle);
  const double standard_error = 1.2533 * 1.4826 * median(rest) * std::sqrt(2.0 / static_cast<double>(third));
  return std::abs(slope) <= drift_bound && std::abs(slope * run) > 4 * standard_error ? slope : 0;
}

Fit fit(std::vector<Tie> ties) {
  std::ranges::sort(ties, {}, &Tie::end_ns);
  const Tie& middle = ties[ties.size() / 2];
  const std::int64_t base = bounded_difference(middle.other_end_ns, middle.end_ns);
  std::vector<double> x, y;
  for (const Tie& tie : ties) {
    x.push_back(static_cast<double>(bounded_difference(tie.end_ns, middle.end_ns)));
    y.push_back(static_cast<double>(bounded_difference(bounded_difference(tie.other_end_ns, tie.end_ns), base)));
  }
  const double slope = resistant_slope(x, y);
  for (std::size_t i = 0; i < x.size(); ++i) y[i] -= slope * x[i];
  const double offset = median(y);
  for (double& value : y) value -= offset;
  return {{bounded_sum(base, std::llround(offset)), middle.end_ns, slope}, spread(y)};
}

// How far the ends are apart after the ranks were put on one clock.
struct Agreement {
  std::size_t ties = 0;
  bool contradicted = false;  // some pair of ranks leaves collectives before the other one enters them
  std::map<Pair, double> error_ns;
};

Agreement agreement(const Ties& ties, const std::vector<Clock>& clocks) {
  Agreement result;
  for (const auto& [pair, of_pair] : ties) {
    const Clock &lower = clocks[pair.first], &higher = clocks[pair.second];
    std::vector<double> apart;
    std::size_t impossible = 0;
    for (const Tie& tie : of_pair) {
      const std::int64_t end = higher(tie.end_ns), other_end = lower(tie.other_end_ns);
      apart.push_back(static_cast<double>(bounded_difference(end, other_end)));
      if (end < lower(tie.other_start_ns) || other_end < higher(tie.start_ns)) ++impossible;
    }
    result.ties += of_pair.size();
    result.contradicted = result.contradicted || (impossible >= 2 && 20 * impossible > of_pair.size());
    result.error_ns[pair] = spread(std::move(apart));
  }
  return result;
}

struct Placed {
  Clock clock;
  double error_ns = unset_utc_error_ns;
  const char* source = "none";
  std::size_t tree = 0;  // ranks of one tree are connected by collectives and by files
  bool kept = false;     // the reader aligned it, and it has no common collectives
};

// Ranks of one file share its clock. Its error is known if they ran on one host.
double error_in_file(const Rank& a, const Rank& b) {
  return !a.host.empty() && a.host == b.host ? same_clock_error_ns : unset_utc_error_ns;
}

// Grows trees over the ranks of one file and the pairs with the most common collectives. Each rank gets the clock that
// leads to its tree's root.
std::vector<Placed> grow_trees(const Ties& ties, const std::vector<Rank>& of_run) {
  const std::size_t ranks = of_run.size();
  std::map<std::string_view, std::vector<std::size_t>> of_file;
  for (std::size_t r = 0; r < ranks; ++r) {
    if (!of_run[r].path.empty()) of_file[of_run[r].path].push_back(r);
  }
  std::vector<std::pair<Pair, const std::vector<Tie>*>> edges;
  for (const auto& [pair, of_pair] : ties) edges.emplace_back(pair, &of_pair);
  std::ranges::stable_sort(edges, std::ranges::greater{}, [](const auto& edge) { return edge.second->size(); });
  std::vector<Placed> placed(ranks);
  std::vector<bool> reached(ranks);
  const auto reach = [&](std::size_t rank, const Placed& at) {
    reached[rank] = true;
    placed[rank] = at;
    if (of_run[rank].path.empty()) return;
    for (const std::size_t other : of_file[of_run[rank].path]) {
      if (reached[other]) continue;
      reached[other] = true;
      placed[other] = {at.clock, at.error_ns + error_in_file(of_run[rank], of_run[other]), "file", at.tree};
    }
  };
  for (std::size_t root = 0; root < ranks; ++root) {
    if (reached[root]) continue;
    reach(root, {{}, 0, "none", root});
    for (bool grown = true; grown;) {
      grown = false;
      for (const auto& [pair, of_pair] : edges) {
        const auto [low, high] = pair;
        if (reached[low] == reached[high]) continue;
        const std::uint32_t known = reached[low] ? low : high, fresh = reached[low] ? high : low;
        if (placed[known].tree != root) continue;
        const Fit line = fit(*of_pair);
        reach(fresh, {after(placed[known].clock, known == low ? line.clock : inverse(line.clock)),
                      placed[known].error_ns + line.error_ns, "collectives", root});
        grown = true;
        break;
      }
    }
  }
  return placed;
}

// Puts the trees on the clock of the largest one: by UTC where possible, or where the reader aligned them already not
// at all.
void join_trees(const Trace& trace, std::vector<Placed>& placed) {
  std::map<std::size_t, std::size_t> sizes;
  for (const Placed& one : placed) ++sizes[one.tree];
  const std::size_t reference =
      std::ranges::max_element(sizes, {}, [](const auto& tree) { return tree.second; })->first;
  std::vector<Placed> roots = placed;
  for (const auto& [tree, size] : sizes) {
    Placed& root = roots[tree];
    if (tree == reference) {
      const bool by_collectives = std::ranges::any_of(placed, [&](const Placed& one) {
        return one.tree == reference && std::string_view(one.source) == "collectives";
      });
      const Rank& first = trace.ranks[tree];
      if (size > 1) {
        placed[tree].source = by_collectives ? "collectives" : "file";
      } else if (!first.clock_source.empty()) {
        placed[tree].source = first.clock_source.c_str();
      }
      continue;
    }
    if (!trace.ranks[tree].clock_source.empty()) {
      root.source = trace.ranks[tree].clock_source.c_str();
      root.error_ns = trace.ranks[tree].clock_error_ns;
      root.kept = true;
      continue;
    }
    const auto &own = trace.ranks[tree].utc_of_zero_ns, &other = trace.ranks[reference].utc_of_zero_ns;
    root.error_ns = unset_utc_error_ns;
    root.source = own && other ? "utc" : "none";
    root.clock.shift_ns = own && other
                              ? bounded_difference(*own, *other)
                              : bounded_difference(trace.ranks[reference].start_ns, trace.ranks[tree].start_ns);
  }
  for (std::size_t r = 0; r < placed.size(); ++r) {
    Placed& one = placed[r];
    if (one.tree == reference) continue;
    const Placed& root = roots[one.tree];
    if (r == one.tree) {
      one = root;
    } else {
      one.clock = after(root.clock, one.clock);
      one.error_ns += root.error_ns;
    }
  }
}

void move(std::vector<std::int64_t>& times, const Clock& clock) {
  for (std::int64_t& time : times) time = clock(time);
}

void move(Slices& slices, const Clock& clock) {
  if (clock.drift == 0) return move(slices.start_ns, clock);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const std::int64_t start = clock(slices.start_ns[i]);
    slices.duration_ns[i] = bounded_difference(clock(slices.end_ns(i)), start);
    slices.start_ns[i] = start;
  }
}

template <class Stretches>
void move_stretches(Stretches& stretches, const Clock& clock) {
  for (auto& stretch : stretches) {
    stretch.start_ns = clock(stretch.start_ns);
    stretch.end_ns = clock(stretch.end_ns);
  }
}

void move(Rank& rank, const Clock& clock) {
  if (clock.shift_ns == 0 && clock.drift == 0) return;
  for (Track& track : rank.tracks) {
    move(track.slices, clock);
    move(track.marks, clock);
    move(track.samples.time_ns, clock);
    move(track.states.time_ns, clock);
    move(track.stacks.time_ns, clock);
    move_stretches(track.lost, clock);
  }
  move_stretches(rank.lost, clock);
  move_stretches(rank.gaps, clock);
  for (Trigger& trigger : rank.triggers) trigger.time_ns = clock(trigger.time_ns);
  rank.start_ns = clock(rank.start_ns);
  rank.end_ns = clock(rank.end_ns);
}

std::vector<Placed> by_utc(const Trace& trace) {
  std::vector<Placed> placed;
  for (const Rank& rank : trace.ranks) {
    Placed one;
    one.source = "utc";
    one.clock.shift_ns = bounded_difference(*rank.utc_of_zero_ns, *trace.ranks.front().utc_of_zero_ns);
    placed.push_back(one);
  }
  return placed;
}

std::vector<Clock> clocks_of(const std::vector<Placed>& placed) {
  std::vector<Clock> clocks;
  for (const Placed& one : placed) clocks.push_back(one.clock);
  return clocks;
}

// The errors of clocks that are aligned by UTC, from what the collectives show.
void add_utc_errors(const Trace& trace, const Agreement& found, std::vector<Placed>& placed) {
  placed.front().error_ns = 0;
  for (std::size_t r = 1; r < placed.size(); ++r) {
    const Rank &rank = trace.ranks[r], &first = trace.ranks.front();
    if (!rank.host.empty() && rank.host == first.host) placed[r].error_ns = same_clock_error_ns;
  }
  for (bool changed = true; changed;) {  // along pairs of ranks with collectives
    changed = false;
    for (const auto& [pair, error_ns] : found.error_ns) {
      Placed &low = placed[pair.first], &high = placed[pair.second];
      for (const auto& [known, fresh] : {std::pair{&low, &high}, std::pair{&high, &low}}) {
        if (known->error_ns + error_ns >= fresh->error_ns) continue;
        fresh->error_ns = known->error_ns + error_ns;
        changed = true;
      }
    }
  }
}

std::string ranks_with(const Trace& trace, const std::vector<Placed>& placed, std::string_view source) {
  std::vector<int> numbers;
  for (std::size_t r = 0; r < placed.size(); ++r) {
    if (placed[r].source == source && !placed[r].kept) numbers.push_back(trace.ranks[r].rank);
  }
  return numbers.empty() ? "" : rank_list(numbers);
}

std::string agreeing(const Agreement& found, const std::vector<Placed>& placed) {
  double error_ns = 0;
  for (const Placed& one : placed) {
    if (one.error_ns < unset_utc_error_ns && !one.kept) error_ns = std::max(error_ns, one.error_ns);
  }
  return fmt::format("the ends of {} collectives agree within {} (95 %)", found.ties, seconds(error_ns * 1e-9));
}

// How the ranks were put on one clock.
struct Method {
  std::vector<Placed> placed;
  Agreement found;
  const char* remark = "";
  bool as_recorded = false;
  bool mixed_collectives = false;
};

// The times as the files have them: no rank is moved.
std::vector<Placed> as_in_the_files(const Trace& trace) {
  std::vector<Placed> placed = grow_trees({}, trace.ranks);
  for (Placed& one : placed) {
    if (one.tree != 0) one.error_ns = unset_utc_error_ns;
  }
  return placed;
}

Method method_for(const Trace& trace, bool all_have_utc, ClockMethod wanted) {
  const std::size_t ranks = trace.ranks.size();
  if (ranks == 1) return {{{{}, 0, all_have_utc ? "utc" : "none", 0}}, {}};
  const Ties ties = ties_of(match_collectives(trace), !all_have_utc || wanted == ClockMethod::collectives);
  if (wanted == ClockMethod::recorded) {
    Method recorded{all_have_utc ? by_utc(trace) : as_in_the_files(trace), {}, "", true};
    recorded.found = agreement(ties, clocks_of(recorded.placed));
    if (all_have_utc) add_utc_errors(trace, recorded.found, recorded.placed);
    return recorded;
  }
  Method utc;
  if (all_have_utc && wanted == ClockMethod::automatic) {
    utc.placed = by_utc(trace);
    utc.found = agreement(ties, clocks_of(utc.placed));
    if (!utc.found.contradicted) {
      add_utc_errors(trace, utc.found, utc.placed);
      return utc;
    }
  }
  const bool contradicts = all_have_utc && wanted == ClockMethod::automatic;
  Method collectives{
      grow_trees(ties, trace.ranks), {}, contradicts ? "; the UTC times in the files contradict them" : ""};
  join_trees(trace, collectives.placed);
  collectives.found = agreement(ties, clocks_of(collectives.placed));
  if (!collectives.found.contradicted) return collectives;
  // No clocks make these collectives possible: different ones were matched, because ranks recorded different parts.
  if (!contradicts) {
    utc.placed = grow_trees({}, trace.ranks);
    join_trees(trace, utc.placed);
  }
  utc.found = {};
  utc.remark = "; the collectives of the ranks do not belong together, and none is matched";
  utc.mixed_collectives = true;
  return utc;
}

void note_method(Trace& trace, const Method& method) {
  const auto& [placed, found, remark, as_recorded, mixed] = method;
  const std::string by_collectives = ranks_with(trace, placed, "collectives");
  if (!by_collectives.empty()) {
    trace.notes.push_back(
        fmt::format("clocks: {} aligned by collectives: {}{}", by_collectives, agreeing(found, placed), remark));
  }
  std::vector<int> kept;
  for (std::size_t r = 0; r < placed.size(); ++r) {
    if (placed[r].kept) kept.push_back(trace.ranks[r].rank);
  }
  if (!kept.empty()) {
    trace.notes.push_back(
        fmt::format("clocks: {} keep their clocks, because they have no common collectives", rank_list(kept)));
  }
  if (const std::string ranks = ranks_with(trace, placed, "utc"); !ranks.empty()) {
    const bool known = std::ranges::all_of(placed, [](const auto& one) { return one.error_ns < unset_utc_error_ns; });
    std::string how_good = "nothing in the files shows how good that is";
    if (by_collectives.empty() && found.ties > 0) {
      how_good = agreeing(found, placed);
    } else if (known) {
      how_good = "all ran on one host";
    }
    trace.notes.push_back(fmt::format("clocks: {} aligned by UTC: {}{}", ranks, how_good, remark));
  }
  if (const std::string ranks = ranks_with(trace, placed, "file"); !ranks.empty()) {
    trace.notes.push_back(fmt::format("clocks: {} aligned by the clock of the file", ranks));
  }
  const std::string unaligned = ranks_with(trace, placed, "none");
  if (!unaligned.empty() && as_recorded) {
    trace.notes.push_back(
        fmt::format("clocks: {} with the times of the files: do not compare times with other ranks", unaligned));
  } else if (!unaligned.empty()) {
    trace.notes.push_back(fmt::format(
        "clocks: {} could not be aligned (no date and no common collectives in the files{}): do not compare "
        "times with other ranks",
        unaligned, remark));
  }
}

}  // namespace trace_clocks

void shift_rank(Rank& rank, std::int64_t ns) {
  trace_clocks::move(rank, {.shift_ns = ns});
  if (rank.utc_of_zero_ns) rank.utc_of_zero_ns = trace_clocks::bounded_difference(*rank.utc_of_zero_ns, ns);
}

void align_ranks(Trace& trace, ClockMethod wanted) {
  using namespace trace_clocks;
  std::vector<Rank>& ranks = trace.ranks;
  const bool aligned = std::ranges::none_of(ranks, [](const Rank& rank) { return rank.clock_source.empty(); });
  if (ranks.empty() || (aligned && wanted != ClockMethod::collectives)) return;
  if (wanted == ClockMethod::exchange) {
    throw Error(fmt::format("{}: these files hold no clock exchanges, as only .pace files do: choose another method",
                            ranks.front().path));
  }
  const bool all_have_utc =
      std::ranges::all_of(ranks, [](const Rank& rank) { return rank.utc_of_zero_ns.has_value(); });
  Method method = method_for(trace, all_have_utc, wanted);
  trace.mixed_collectives = method.mixed_collectives;
  std::vector<Placed>& placed = method.placed;
  if (ranks.size() > 1) note_method(trace, method);
  std::int64_t first = longest_time_ns;
  for (std::size_t r = 0; r < ranks.size(); ++r) first = std::min(first, placed[r].clock(ranks[r].start_ns));
  for (Placed& one : placed) one.clock.shift_ns = bounded_difference(one.clock.shift_ns, first);
  parallel_for(ranks.size(), [&](std::size_t r) {
    move(ranks[r], placed[r].clock);
    ranks[r].clock_source = placed[r].source;
    ranks[r].clock_error_ns = placed[r].error_ns;
    std::optional<std::int64_t>& utc = ranks[r].utc_of_zero_ns;
    if (utc) utc = bounded_difference(*utc, placed[r].clock.shift_ns);
  });
}

}  // namespace paceline::analysis
