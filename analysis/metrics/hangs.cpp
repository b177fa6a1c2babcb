#include "analysis/metrics/hangs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "analysis/text/lists.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace hang_search {

// A shorter wait is no hang yet.
constexpr std::int64_t shortest_hang_ns = 1'000'000'000;

// The number of a collective: its sequence on the communicator, and for a persistent one which start it is.
using Number = std::pair<std::uint64_t, std::uint32_t>;

// The calls of a rank that are numbered together.
struct Seen {
  std::int64_t highest = -1;                      // the highest sequence that it entered
  std::map<std::uint64_t, std::uint32_t> starts;  // of persistent collectives, by sequence
  std::map<Number, const CollectiveCall*> waits;  // those that it waits in at its end
  std::vector<const CollectiveCall*> enqueued;    // of NCCL; no event shows that they ran
  std::int64_t longest_ns = 0;                    // the longest of its waits that ended

  bool entered(const Number& number) const {
    if (number.second == 0) return highest >= static_cast<std::int64_t>(number.first);
    const auto found = starts.find(number.first);
    return found != starts.end() && found->second >= number.second;
  }
};

// MPI numbers all calls on a communicator together, NCCL those of each function.
struct Group {
  std::uint64_t communicator = 0;
  std::string function;  // "" for MPI
  auto operator<=>(const Group&) const = default;
};

using SeenByGroup = std::map<Group, std::map<std::size_t, Seen>>;  // by group and rank

void add(const CollectiveCall& call, Seen& seen) {
  if (call.round > 0) {
    seen.starts[call.sequence] = std::max(seen.starts[call.sequence], call.round);
  } else {
    seen.highest = std::max(seen.highest, static_cast<std::int64_t>(call.sequence));
  }
  if (call.type == CallType::enqueued) seen.enqueued.push_back(&call);
  if (call.unfinished) {
    seen.waits[{call.sequence, call.round}] = &call;
  } else if (call.type == CallType::plain) {
    seen.longest_ns = std::max(seen.longest_ns, call.end_ns - call.blocked_from_ns);
  }
}

SeenByGroup collect(std::span<const CollectiveCalls> ranks) {
  SeenByGroup groups;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (const CollectiveCall& call : ranks[r].calls) {
      if (call.counted) continue;  // positions may differ between ranks
      add(call, groups[{call.communicator, call.of_nccl ? ranks[r].operations[call.operation] : ""}][r]);
    }
  }
  // Members that made no call.
  for (auto& [group, seen] : groups) {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const auto& own = ranks[r].communicators;
      if (std::ranges::count(own, group.communicator, &CollectiveCalls::Membership::communicator) > 0) seen[r];
    }
  }
  return groups;
}

std::string text_of(std::span<const CollectiveCalls> ranks, std::uint64_t communicator) {
  for (const CollectiveCalls& rank : ranks) {
    const auto found = std::ranges::find(rank.communicators, communicator, &CollectiveCalls::Membership::communicator);
    if (found != rank.communicators.end()) return found->text;
  }
  return "";
}

// The device of a rank runs a collective of NCCL until all members have enqueued it. CUPTI and NCCL report it when it
// has ended, so that of a collective that hangs only the enqueueing is known. Takes the first collective that a member
// never enqueued for one that the others wait in.
void wait_in_enqueued(std::span<const CollectiveCalls> ranks, std::map<std::size_t, Seen>& seen) {
  std::int64_t all_entered = std::numeric_limits<std::int64_t>::max() - 1;
  for (const auto& [r, rank] : seen) {
    if (ranks[r].complete_at_end) all_entered = std::min(all_entered, rank.highest);
  }
  for (auto& [r, rank] : seen) {
    for (const CollectiveCall* call : rank.enqueued) {
      if (static_cast<std::int64_t>(call->sequence) == all_entered + 1)
        rank.waits.try_emplace({call->sequence, 0}, call);
    }
  }
}

// The first collective of the group that hangs; nothing is missing where none does.
Hang first_hang(std::span<const CollectiveCalls> ranks, const Group& group, const std::map<std::size_t, Seen>& seen) {
  std::map<Number, Hang> by_number;
  std::int64_t patience_ns = shortest_hang_ns;
  for (const auto& [r, rank] : seen) {
    patience_ns = std::max(patience_ns, rank.longest_ns);
    for (const auto& [number, call] : rank.waits) {
      Hang& hang = by_number[number];
      const std::string& operation = ranks[r].operations[call->operation];
      if (hang.operation.empty()) hang.operation = operation;
      if (operation == hang.operation) {
        hang.waiting.push_back({ranks[r].rank, call->blocked_from_ns, ranks[r].end_ns});
      } else {
        hang.missing.push_back({ranks[r].rank, "", operation});
      }
    }
  }
  for (auto& [number, hang] : by_number) {  // the lowest one holds up the others
    const auto waited = [](const Hang::Waiting& rank) { return rank.until_ns - rank.since_ns; };
    const auto longest = std::ranges::max_element(hang.waiting, {}, waited);
    // Another collective than the others': no patience will mend that.
    const bool mismatched = !hang.missing.empty();
    if (!mismatched && waited(*longest) <= patience_ns) continue;
    for (const auto& [r, rank] : seen) {
      // How often a persistent collective was started is known only where nothing is missing.
      const bool known = number.second > 0 ? ranks[r].complete : ranks[r].complete_at_end;
      if (known && !rank.entered(number)) hang.missing.push_back({ranks[r].rank, ranks[r].open_slice, ""});
    }
    if (hang.missing.empty()) continue;
    std::ranges::sort(hang.missing, {}, &Hang::Missing::rank);
    hang.number = number.first + 1;
    hang.round = number.second;
    hang.communicator = text_of(ranks, group.communicator);
    return std::move(hang);
  }
  return {};
}

}  // namespace hang_search

std::vector<Hang> find_hangs(std::span<const CollectiveCalls> ranks) {
  std::vector<Hang> hangs;
  hang_search::SeenByGroup groups = hang_search::collect(ranks);
  for (auto& [group, seen] : groups) {
    hang_search::wait_in_enqueued(ranks, seen);
    Hang hang = hang_search::first_hang(ranks, group, seen);
    if (!hang.missing.empty()) hangs.push_back(std::move(hang));
  }
  std::ranges::stable_sort(hangs, {}, [](const Hang& hang) {
    return std::ranges::min(hang.waiting, {}, &Hang::Waiting::since_ns).since_ns;
  });
  return hangs;
}

std::string hang_text(const Hang& hang) {
  std::vector<int> never, waiting;
  std::string details;
  for (const Hang::Missing& missing : hang.missing) {
    never.push_back(missing.rank);
    if (!missing.other.empty()) details += fmt::format("; rank {} called {} instead", missing.rank, missing.other);
    if (!missing.inside.empty()) details += fmt::format("; rank {} was in {}", missing.rank, missing.inside);
  }
  std::int64_t since = hang.waiting.front().since_ns, until = since;
  for (const Hang::Waiting& rank : hang.waiting) {
    waiting.push_back(rank.rank);
    since = std::min(since, rank.since_ns);
    until = std::max(until, rank.until_ns);
  }
  return fmt::format("{} never entered {}{} #{} on {}; {} {} in it since {}, for {}{}.", capitalised(rank_list(never)),
                     hang.round > 0 ? fmt::format("start {} of ", hang.round) : "", hang.operation, hang.number,
                     hang.communicator, rank_list(waiting), waiting.size() == 1 ? "has waited" : "have waited",
                     point_in_time(since), point_in_time(until - since), details);
}

}  // namespace paceline::analysis
