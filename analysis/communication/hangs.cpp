// SPDX-License-Identifier: Apache-2.0
#include "analysis/communication/hangs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "analysis/text/lists.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace hang_search {

// A shorter wait is no hang yet.
constexpr std::int64_t shortest_hang_ns = 1'000'000'000;

// A rank that still makes progress may be slow. It is missing only if the others wait much longer than ever before.
constexpr std::int64_t busy_patience = 10;

// The number of a collective: its sequence on the communicator, and for a persistent one which start it is.
using Number = std::pair<std::uint64_t, std::uint32_t>;

// The calls of a rank that are numbered together.
struct Seen {
  std::int64_t highest = -1;                      // the highest sequence that it entered
  std::map<std::uint64_t, std::uint32_t> starts;  // of persistent collectives, by sequence
  std::map<Number, const CollectiveCall*> waits;  // those that it waits in at its end
  const CollectiveCall* last = nullptr;           // that ended, of those that need all members
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

// True of the collectives that no rank can complete before all have entered: MPI's, PyTorch's and their variants.
bool needs_all(std::string operation) {
  std::erase(operation, '_');
  std::ranges::transform(operation, operation.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::array names = {"allreduce", "allgather", "alltoall", "barrier", "reducescatter"};
  return std::ranges::any_of(names, [&](const char* name) { return operation.find(name) != std::string::npos; });
}

void add(const CollectiveCall& call, bool all, Seen& seen) {
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
    if (all && call.round == 0 && (seen.last == nullptr || seen.last->sequence < call.sequence)) seen.last = &call;
  }
}

SeenByGroup collect(std::span<const CollectiveCalls> ranks) {
  SeenByGroup groups;
  std::set<Group> of_all;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    std::vector<char> all;
    for (const std::string& operation : ranks[r].operations) all.push_back(needs_all(operation));
    for (const CollectiveCall& call : ranks[r].calls) {
      if (call.counted) continue;  // positions may differ between ranks
      const Group group{call.communicator, call.of_nccl ? ranks[r].operations[call.operation] : ""};
      add(call, all[call.operation] != 0, groups[group][r]);
      if (call.members == ranks.size()) of_all.insert(group);
    }
  }
  // Members that made no call.
  for (auto& [group, seen] : groups) {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const auto& own = ranks[r].communicators;
      if (of_all.contains(group) ||
          std::ranges::count(own, group.communicator, &CollectiveCalls::Membership::communicator) > 0) {
        seen[r];
      }
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

// The peer as an index of `ranks`; nothing if it is any rank or not known.
std::optional<std::size_t> peer_of(std::span<const CollectiveCalls> ranks, const CollectiveCalls::Pending& call) {
  if (call.peer < 0) return std::nullopt;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (const CollectiveCalls::Membership& own : ranks[r].communicators) {
      if (own.communicator == call.communicator && own.own_rank == call.peer) return r;
    }
  }
  return std::nullopt;
}

// "rank 0 waits in MPI_Recv for rank 1, tag 7".
std::string pending_text(std::span<const CollectiveCalls> ranks, std::size_t rank,
                         const CollectiveCalls::Pending& call) {
  const auto peer = peer_of(ranks, call);
  std::string whom = peer ? fmt::format("rank {}", ranks[*peer].rank) : "any rank";
  if (!peer && call.peer >= 0) whom = fmt::format("rank {} of its communicator", call.peer);
  return fmt::format("rank {} waits in {} for {}, {}", ranks[rank].rank, call.operation, whom,
                     call.tag < 0 ? std::string("any tag") : fmt::format("tag {}", call.tag));
}

// True if the two calls are the sides of one message, which then only takes its time.
bool match(const CollectiveCalls::Pending& a, const CollectiveCalls::Pending& b) {
  const auto fits = [](const CollectiveCalls::Pending& send, const CollectiveCalls::Pending& receive) {
    // The receiving half of MPI_Sendrecv is not recorded.
    const bool any_tag = receive.tag < 0 || receive.sends;
    return send.sends && receive.receives && (any_tag || send.tag == receive.tag);
  };
  return a.communicator == b.communicator && (fits(a, b) || fits(b, a));
}

// Ranks that wait for each other in messages, in a circle.
std::vector<Hang> message_hangs(std::span<const CollectiveCalls> ranks) {
  struct Wait {
    const CollectiveCalls::Pending* call = nullptr;
    std::size_t peer = 0;
  };
  std::vector<Wait> waits(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (!ranks[r].complete_at_end) continue;
    for (const CollectiveCalls::Pending& call : ranks[r].pending) {
      const auto peer = peer_of(ranks, call);
      if (peer && call.until_ns - call.since_ns > shortest_hang_ns) waits[r] = {&call, *peer};
    }
  }
  std::vector<Hang> hangs;
  std::vector<std::size_t> seen_from(ranks.size(), ranks.size());
  for (std::size_t start = 0; start < ranks.size(); ++start) {
    std::size_t at = start;
    while (waits[at].call != nullptr && seen_from[at] == ranks.size()) {
      seen_from[at] = start;
      at = waits[at].peer;
    }
    if (waits[at].call == nullptr || seen_from[at] != start) continue;
    Hang hang;  // `at` lies on a new circle
    bool moves = false;
    const std::size_t first = at;
    do {
      const Wait& wait = waits[at];
      const Wait& back = waits[wait.peer];
      moves = moves || (back.peer == at && wait.peer != at && match(*wait.call, *back.call));
      hang.waiting.push_back({ranks[at].rank, wait.call->since_ns, wait.call->until_ns});
      hang.circle.push_back(pending_text(ranks, at, *wait.call));
      at = wait.peer;
    } while (at != first);
    if (!moves) hangs.push_back(std::move(hang));
  }
  return hangs;
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
        const bool enqueued = call->type == CallType::enqueued;  // nothing shows when it runs
        hang.waiting.push_back({ranks[r].rank, call->blocked_from_ns, enqueued ? ranks[r].end_ns : call->end_ns});
      } else {
        hang.missing.push_back({ranks[r].rank, false, "", operation, ""});
      }
    }
  }
  for (auto& [number, hang] : by_number) {  // the lowest one holds up the others
    const auto waited = [](const Hang::Waiting& rank) { return rank.until_ns - rank.since_ns; };
    const auto longest = std::ranges::max_element(hang.waiting, {}, waited);
    // Another collective than the others': no patience will mend that.
    const bool mismatched = !hang.missing.empty();
    if (!mismatched && waited(*longest) <= patience_ns) continue;
    const bool very_long = waited(*longest) > busy_patience * patience_ns;
    for (const auto& [r, rank] : seen) {
      // How often a persistent collective was started is known only where nothing is missing.
      const bool known = number.second > 0 ? ranks[r].complete : ranks[r].complete_at_end;
      if (!known || rank.entered(number)) continue;
      if (ranks[r].busy && !very_long) continue;
      std::string message, inside = ranks[r].open_slice;
      if (!ranks[r].pending.empty()) {
        message = pending_text(ranks, r, ranks[r].pending.front());
        if (inside == ranks[r].pending.front().operation) inside.clear();
      }
      hang.missing.push_back({ranks[r].rank, false, std::move(inside), "", std::move(message)});
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

// The last collective that ended on some rank although another one never completed it, because the process of one of
// them failed. While processes run, their files are of different moments, so that one seems to be ahead of another.
Hang broken_collective(std::span<const CollectiveCalls> ranks, const Group& group,
                       const std::map<std::size_t, Seen>& seen) {
  std::uint64_t last = 0;
  for (const auto& [r, rank] : seen) last = std::max(last, rank.last != nullptr ? rank.last->sequence : 0);
  Hang hang;
  hang.broken = true;
  hang.number = last + 1;
  hang.communicator = text_of(ranks, group.communicator);
  bool failed = false;
  for (const auto& [r, rank] : seen) {
    const bool ended_inside = rank.waits.contains({last, 0});
    if (rank.last != nullptr && rank.last->sequence == last && !ended_inside) {
      hang.operation = ranks[r].operations[rank.last->operation];
      hang.waiting.push_back({ranks[r].rank, rank.last->blocked_from_ns, rank.last->end_ns});
    } else if (ended_inside || (ranks[r].complete_at_end && !rank.entered({last, 0}))) {
      hang.missing.push_back({ranks[r].rank, ended_inside, "", "", ""});
    } else {
      continue;
    }
    failed = failed || ranks[r].failed;
  }
  return failed && !hang.waiting.empty() ? hang : Hang{};
}

}  // namespace hang_search

std::vector<Hang> find_hangs(std::span<const CollectiveCalls> ranks) {
  std::vector<Hang> hangs;
  hang_search::SeenByGroup groups = hang_search::collect(ranks);
  for (auto& [group, seen] : groups) {
    hang_search::wait_in_enqueued(ranks, seen);
    Hang hang = hang_search::first_hang(ranks, group, seen);
    if (hang.missing.empty()) hang = hang_search::broken_collective(ranks, group, seen);
    if (!hang.missing.empty()) hangs.push_back(std::move(hang));
  }
  std::ranges::move(hang_search::message_hangs(ranks), std::back_inserter(hangs));
  std::ranges::stable_sort(hangs, {}, [](const Hang& hang) {
    return std::ranges::min(hang.waiting, {}, &Hang::Waiting::since_ns).since_ns;
  });
  return hangs;
}

std::string hang_text(const Hang& hang) {
  std::vector<int> never, waiting, inside;
  std::string details;
  for (const Hang::Missing& missing : hang.missing) {
    (missing.entered ? inside : never).push_back(missing.rank);
    if (!missing.other.empty()) details += fmt::format("; rank {} called {} instead", missing.rank, missing.other);
    if (!missing.message.empty()) details += "; " + missing.message;
    if (!missing.inside.empty()) details += fmt::format("; rank {} was in {}", missing.rank, missing.inside);
  }
  std::int64_t since = hang.waiting.front().since_ns, until = since;
  for (const Hang::Waiting& rank : hang.waiting) {
    waiting.push_back(rank.rank);
    since = std::min(since, rank.since_ns);
    until = std::max(until, rank.until_ns);
  }
  if (!hang.circle.empty()) {
    return fmt::format("Messages hang: {}; since {}, for {}.", fmt::join(hang.circle, "; "), point_in_time(since),
                       point_in_time(until - since));
  }
  if (hang.broken) {
    std::vector<std::string> whose;
    if (!never.empty()) whose.push_back(rank_list(never) + " never entered");
    if (!inside.empty()) whose.push_back(rank_list(inside) + " ended in");
    return fmt::format("{} {} #{} on {}, which therefore failed: {} {} in it from {} for {}.",
                       capitalised(fmt::format("{}", fmt::join(whose, " and "))), hang.operation, hang.number,
                       hang.communicator, rank_list(waiting), waiting.size() == 1 ? "was" : "were",
                       point_in_time(since), point_in_time(until - since));
  }
  return fmt::format("{} never entered {}{} #{} on {}; {} {} in it since {}, for {}{}.", capitalised(rank_list(never)),
                     hang.round > 0 ? fmt::format("start {} of ", hang.round) : "", hang.operation, hang.number,
                     hang.communicator, rank_list(waiting), waiting.size() == 1 ? "has waited" : "have waited",
                     point_in_time(since), point_in_time(until - since), details);
}

}  // namespace paceline::analysis
