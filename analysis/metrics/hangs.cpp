#include "analysis/metrics/hangs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace paceline::analysis {
namespace {

struct Seen {
  std::optional<std::uint64_t> highest;            // sequence of the latest collective that it began
  std::map<std::uint64_t, NameId> unfinished;      // open at its end: operation by sequence
  std::map<std::uint64_t, std::int64_t> since_ns;  // of those
  std::int64_t longest_ns = 0;                     // of the finished ones
};

// A wait is no hang yet that is shorter than this, or than others in this run that ended.
constexpr std::int64_t shortest_hang_ns = 1'000'000'000;

// What each rank did on each communicator.
using SeenCollectives = std::map<NameId, std::map<std::uint32_t, Seen>>;

// A collective that its call only began, by its request.
struct Begun {
  Seen* seen;
  std::uint64_t sequence;
  NameId operation;
};
using BegunCollectives = std::unordered_map<std::uint64_t, Begun>;

// The waits of a rank for what it began: those that ended, and those that it is in.
void look_at_waits(const Trace& trace, const Rank& rank, const BegunCollectives& begun) {
  const NameId wait = trace.names.find("wait"), request = trace.names.find("request"),
               unfinished = trace.names.find("unfinished");
  for (const Track& track : rank.tracks) {
    const Slices& slices = track.slices;
    for (std::uint32_t i = 0; i < slices.size(); ++i) {
      if (slices.record[i] == 0 || trace.kind_of(slices, i).category != wait) continue;
      slices.each_argument(i, [&](const Argument& argument) {
        if (argument.key != request) return;
        const auto found = begun.find(argument.whole());
        if (found == begun.end()) return;
        const auto& [seen, sequence, operation] = found->second;
        if (unfinished == 0 || !slices.argument(i, unfinished)) {
          seen->longest_ns = std::max(seen->longest_ns, slices.duration_ns[i]);
        } else {
          seen->unfinished[sequence] = operation;
          seen->since_ns[sequence] = slices.start_ns[i];
        }
      });
    }
  }
}

SeenCollectives collect(const Trace& trace) {
  SeenCollectives table;
  const NameId collective = trace.names.find("collective"), communicator = trace.names.find("communicator"),
               sequence = trace.names.find("sequence"), unfinished = trace.names.find("unfinished"),
               request = trace.names.find("request");
  if (collective == 0 || communicator == 0 || sequence == 0) return table;
  for (std::uint32_t r = 0; r < trace.ranks.size(); ++r) {
    for (const NameId member_of : trace.ranks[r].communicators) table[member_of][r];
    BegunCollectives begun;
    for (const Track& track : trace.ranks[r].tracks) {
      const Slices& slices = track.slices;
      for (std::uint32_t i = 0; i < slices.size(); ++i) {
        if (trace.kind_of(slices, i).category != collective) continue;
        const NameId on = slices.text(i, communicator);
        const auto number = slices.number(i, sequence);
        if (on == 0 || !number || *number < 0) continue;
        Seen& seen = table[on][r];
        const auto at = static_cast<std::uint64_t>(*number);
        seen.highest = std::max(seen.highest.value_or(0), at);
        const NameId operation = trace.kind_of(slices, i).name;
        if (unfinished == 0 || !slices.number(i, unfinished)) {
          seen.longest_ns = std::max(seen.longest_ns, slices.duration_ns[i]);
          const auto posted = request != 0 ? slices.argument(i, request) : std::nullopt;
          if (posted) begun[posted->whole()] = {&seen, at, operation};
          continue;
        }
        seen.unfinished[at] = operation;
        seen.since_ns[at] = slices.start_ns[i];
      }
    }
    if (!begun.empty()) look_at_waits(trace, trace.ranks[r], begun);
  }
  return table;
}

bool is_known_to_the_end(const Rank& rank) {
  const bool paused_at_end = !rank.gaps.empty() && rank.gaps.back().end_ns >= rank.end_ns;
  return !paused_at_end && rank.dropped.empty() && !rank.damaged;
}

// The innermost slice of the main thread that was open when the rank ended.
NameId open_slice(const Trace& trace, const Rank& rank) {
  const Track* main = main_track(rank);
  const NameId unfinished = trace.names.find("unfinished");
  if (main == nullptr || unfinished == 0) return 0;
  for (auto i = static_cast<std::uint32_t>(main->slices.size()); i-- > 0;) {
    const bool open = main->slices.end_ns(i) >= rank.end_ns && main->slices.number(i, unfinished);
    if (open) return trace.kind_of(main->slices, i).name;
  }
  return 0;
}

// How long the first rank has waited.
std::int64_t waited_ns(const Trace& trace, const Hang& hang) {
  std::int64_t longest = 0;
  for (const WaitingRank& rank : hang.waiting) {
    longest = std::max(longest, trace.ranks[rank.rank].end_ns - rank.since_ns);
  }
  return longest;
}

std::string seconds_text(std::int64_t ns) { return fmt::format("{:.3f} s", static_cast<double>(ns) * 1e-9); }

// "rank 2", "ranks 0, 1 and 3"
std::string hung_ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace

std::vector<Hang> find_hangs(const Trace& trace) {
  std::vector<Hang> hangs;
  for (const auto& [communicator, by_rank] : collect(trace)) {
    std::map<std::uint64_t, Hang> by_sequence;
    std::int64_t patience_ns = shortest_hang_ns;
    for (const auto& [rank, seen] : by_rank) {
      patience_ns = std::max(patience_ns, seen.longest_ns);
      for (const auto& [sequence, operation] : seen.unfinished) {
        Hang& hang = by_sequence[sequence];
        hang.communicator = communicator;
        hang.number = sequence + 1;
        if (hang.operation == 0) hang.operation = operation;
        if (operation == hang.operation) {
          hang.waiting.push_back({rank, seen.since_ns.at(sequence)});
        } else {
          hang.missing.push_back({rank, 0, operation});
        }
      }
    }
    for (auto& [sequence, hang] : by_sequence) {  // the lowest is what holds all others up
      // Another collective than the others': no wait will mend that.
      const bool mismatched = !hang.missing.empty();
      if (!mismatched && waited_ns(trace, hang) <= patience_ns) continue;
      for (const auto& [rank, seen] : by_rank) {
        if (seen.highest && *seen.highest >= sequence) continue;
        if (!is_known_to_the_end(trace.ranks[rank])) continue;
        hang.missing.push_back({rank, open_slice(trace, trace.ranks[rank]), 0});
      }
      if (hang.missing.empty()) continue;
      std::ranges::sort(hang.missing, {}, &Hang::Missing::rank);
      hangs.push_back(std::move(hang));
      break;
    }
  }
  const auto first = [](const Hang& hang) {
    return std::ranges::min(hang.waiting, {}, &WaitingRank::since_ns).since_ns;
  };
  std::ranges::stable_sort(hangs, {}, first);
  return hangs;
}

std::string hang_text(const Trace& trace, const Hang& hang) {
  std::vector<int> never, waiting;
  std::string details;
  for (const Hang::Missing& missing : hang.missing) {
    const int rank = trace.ranks[missing.rank].rank;
    never.push_back(rank);
    if (missing.other != 0) details += fmt::format("; rank {} called {} instead", rank, trace.names[missing.other]);
    if (missing.inside != 0) details += fmt::format("; rank {} was in {}", rank, trace.names[missing.inside]);
  }
  std::int64_t since = hang.waiting.front().since_ns, until = since;
  for (const WaitingRank& rank : hang.waiting) {
    waiting.push_back(trace.ranks[rank.rank].rank);
    since = std::min(since, rank.since_ns);
    until = std::max(until, trace.ranks[rank.rank].end_ns);
  }
  std::string text =
      fmt::format("{} never entered {} #{} on {}; {} {} in it since {}, for {}{}.", hung_ranks_text(never),
                  trace.names[hang.operation], hang.number, trace.names[hang.communicator], hung_ranks_text(waiting),
                  waiting.size() == 1 ? "waits" : "wait", seconds_text(since), seconds_text(until - since), details);
  text.front() = 'R';
  return text;
}

std::string sudden_ends_text(const Trace& trace) {
  std::vector<int> ranks;
  const Rank* first = nullptr;
  for (const Rank& rank : trace.ranks) {
    if (rank.ended) continue;
    ranks.push_back(rank.rank);
    if (first == nullptr || rank.end_ns < first->end_ns) first = &rank;
  }
  if (first == nullptr) return "";
  const std::string last_event = seconds_text(first->end_ns);
  if (ranks.size() == 1) {
    return fmt::format(
        "Rank {} did not end by itself (a signal ended it, it crashed, or it still runs): its last event "
        "is at {}.",
        ranks[0], last_event);
  }
  constexpr std::size_t most_named = 16;
  std::string who = ranks.size() <= most_named ? hung_ranks_text(ranks) : fmt::format("{} ranks", ranks.size());
  if (who.front() == 'r') who.front() = 'R';
  return fmt::format(
      "{} did not end by themselves (signals ended them, they crashed, or they still run): the earliest "
      "last event is rank {}'s, at {}.",
      who, first->rank, last_event);
}

}  // namespace paceline::analysis
