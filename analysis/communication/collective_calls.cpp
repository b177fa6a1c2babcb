// SPDX-License-Identifier: Apache-2.0
#include "analysis/communication/collective_calls.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace paceline::analysis {
namespace collective_extraction {

constexpr std::uint64_t no_sequence = ~std::uint64_t{0};
constexpr std::uint64_t most_requests = 4096;  // of one wait; more are a damaged number

class Extraction {
 public:
  Extraction(const Trace& trace, const Rank& rank) : trace_(trace), rank_(rank) {}

  CollectiveCalls run() {
    out_.rank = rank_.rank;
    out_.world_size = rank_.world_size;
    out_.end_ns = rank_.end_ns;
    out_.open_slice = open_slice();
    out_.failed = rank_.ended && rank_.facts.contains("exit_status");  // which is not there for 0
    const bool lost = !rank_.dropped.empty() || rank_.damaged;
    out_.complete = rank_.gaps.empty() && !lost;
    out_.complete_at_end = !lost && (rank_.gaps.empty() || rank_.gaps.back().end_ns < rank_.end_ns);
    for (const Gap& gap : rank_.gaps) out_.covered.front().push_back({gap.start_ns, gap.end_ns});
    out_.covered.fill(merged(std::move(out_.covered.front())));
    for (std::size_t c = 0; c < rank_.communicators.size(); ++c) {
      const std::uint64_t identity = identity_of(rank_.communicators[c]);
      if (c >= rank_.communicator_ranks.size()) continue;
      std::ranges::find(out_.communicators, identity, &CollectiveCalls::Membership::communicator)->own_rank =
          rank_.communicator_ranks[c];
    }
    const std::vector<std::uint8_t> wanted = wanted_kinds();
    for (std::uint32_t t = 0; t < rank_.tracks.size(); ++t) look_at(t, wanted);
    name_persistent();
    complete();
    find_pending();
    return std::move(out_);
  }

 private:
  NameId name(const char* text) const { return trace_.names.find(text); }

  // Remembers the communicator for people as well.
  std::uint64_t identity_of(NameId text) {
    if (text == 0) return 0;
    const auto [found, fresh] = identities_.try_emplace(text, 0);
    if (fresh) {
      const Communicator* known = trace_.communicators.find(text);
      found->second = known != nullptr ? known->identity : name_identity(trace_.names[text]);
      out_.communicators.push_back({found->second, trace_.names[text]});
    }
    return found->second;
  }

  std::uint32_t operation_of(NameId name) {
    const auto [found, fresh] = operations_.try_emplace(name, static_cast<std::uint32_t>(out_.operations.size()));
    if (fresh) out_.operations.push_back(trace_.names[name]);
    return found->second;
  }

  bool starts(const Kind& kind) const { return kind.name == start_ && start_ != 0; }
  bool of_nccl(const Kind& kind) const { return kind.domain == nccl_ && nccl_ != 0; }
  bool of_torch(const Kind& kind) const { return kind.domain == torch_ && torch_ != 0; }
  bool enqueued(const Kind& kind) const {
    return (of_nccl(kind) || of_torch(kind)) && kind.category == enqueue_ && enqueue_ != 0;
  }

  // Whether slices of each kind may be calls of collectives.
  std::vector<std::uint8_t> wanted_kinds() const {
    std::vector<std::uint8_t> wanted;
    for (const Kind& kind : trace_.kinds) {
      wanted.push_back(starts(kind) || enqueued(kind) || (kind.category == collective_ && collective_ != 0));
    }
    return wanted;
  }

  void look_at(std::uint32_t track, const std::vector<std::uint8_t>& wanted) {
    const Slices& slices = rank_.tracks[track].slices;
    const Blocking blocking = blocking_of(rank_.tracks[track]);
    for (std::uint32_t i = 0; i < slices.size(); ++i) {
      if (wanted[slices.kind[i]] == 0) continue;
      const Kind& kind = trace_.kind_of(slices, i);
      const bool starts = this->starts(kind), of_nccl = this->of_nccl(kind), enqueued = this->enqueued(kind);
      CollectiveCall call{.sequence = no_sequence,
                          .type = enqueued ? CallType::enqueued : CallType::plain,
                          .blocking = blocking,
                          .of_nccl = of_nccl,
                          .start_ns = slices.start_ns[i],
                          .end_ns = slices.end_ns(i),
                          .blocked_from_ns = slices.start_ns[i],
                          .polled_from_ns = slices.start_ns[i],
                          .track = track,
                          .slice = i};
      std::uint64_t request = 0;  // completed by another call; 0 = none
      bool done = false;          // the call completed its own request
      slices.each_argument(i, [&](const Argument& argument) { read(argument, call, request, done); });
      const bool numbered = call.sequence != no_sequence;
      const bool ends_itself = of_torch(kind) && request != 0;
      if (ends_itself) call.blocked_from_ns = call.polled_from_ns = call.end_ns, call.blocking = Blocking::always;
      // A start without a number is a message's; an enqueueing without one is a call around the collective's own.
      if ((starts || enqueued) && !numbered) continue;
      if (call.members == 1) continue;  // MPI_COMM_SELF and the like: nobody to wait for
      if (of_nccl && !numbered) {
        ++out_.unnumbered;
        continue;
      }
      if (ends_itself) open_[request] = {out_.calls.size(), true};
      add(kind.name, starts, request, done, numbered, call);
    }
  }

  void add(NameId name, bool starts, std::uint64_t request, bool done, bool numbered, CollectiveCall& call) {
    const std::string_view text = trace_.names[name];
    call.operation = operation_of(name);
    if (text.ends_with("_init")) {
      call.type = CallType::initialisation;
      if (numbered) initialised_[{call.communicator, call.sequence}] = call.operation;
    }
    // In a neighbourhood a rank waits for its neighbours, which a trace does not name.
    if (text.find("eighbor_") != text.npos || call.type != CallType::plain) call.timed = false;
    const bool returns_early = starts || text.starts_with("MPI_I");
    if (returns_early && request == 0) call.timed = false;
    if (call.communicator == 0 || !numbered) {
      call.counted = true;
      call.sequence = counts_[{call.communicator, call.operation}]++;
    }
    if (starts) starts_.push_back(out_.calls.size());
    if (returns_early && !done && request != 0) open_[request] = {out_.calls.size(), false};
    out_.calls.push_back(call);
  }

  // A request that is there twice was posted and completed by the same call.
  void read(const Argument& argument, CollectiveCall& call, std::uint64_t& request, bool& done) {
    if (argument.key == bytes_) call.bytes = argument.whole();
    if (argument.key == communicator_) call.communicator = identity_of(argument.text());
    if (argument.key == sequence_) call.sequence = argument.whole();
    if (argument.key == members_) call.members = static_cast<std::uint32_t>(argument.whole());
    if (argument.key == unfinished_) call.unfinished = true;
    if (argument.key != request_) return;
    done = request != 0;
    request = argument.whole();
  }

  // The starts of a persistent collective get the name of its initialisation. They are counted, because only one runs
  // at a time.
  void name_persistent() {
    std::ranges::stable_sort(starts_, {}, [&](std::size_t at) { return out_.calls[at].start_ns; });
    auto rounds = rank_.earlier_starts;
    for (const std::size_t at : starts_) {
      CollectiveCall& start = out_.calls[at];
      const std::pair key(start.communicator, start.sequence);
      start.round = ++rounds[key];
      if (const auto named = initialised_.find(key); named != initialised_.end()) start.operation = named->second;
      if (out_.operations[start.operation].find("eighbor_") != std::string::npos) start.timed = false;
    }
  }

  // Ends the calls that returned early with the wait or test that completed their request.
  void complete() {
    if (open_.empty()) return;
    for (const Kind& kind : trace_.kinds) tests_.push_back(trace_.names[kind.name].starts_with("MPI_Test"));
    for (const Track& track : rank_.tracks) {
      const Slices& slices = track.slices;
      bool polls = false;
      for (std::size_t i = 0; i < slices.size(); ++i) {
        const bool tests = tests_[slices.kind[i]] != 0;
        if (tests && !polls) polls_from_ns_ = slices.start_ns[i];
        polls = tests;
        if (slices.record[i] == 0 || trace_.kind_of(slices, i).category != wait_) continue;
        std::uint64_t first = 0, last = 0;  // of PyTorch, which waits for several requests at once
        slices.each_argument(i, [&](const Argument& argument) {
          if (argument.key == request_) complete(track, i, first = argument.whole());
          if (argument.key == last_request_) last = std::min(argument.whole(), first + most_requests);
        });
        for (std::uint64_t request = first + 1; first != 0 && request <= last; ++request) complete(track, i, request);
      }
    }
    const Polling polling = polling_at_end();
    for (const auto& [request, open] : open_) {
      if (open.ends_itself) continue;
      CollectiveCall& call = out_.calls[open.call];
      call.timed = false;
      if (polling.until_ns <= call.start_ns) continue;
      call.unfinished = true;
      call.blocked_from_ns = std::max(call.start_ns, polling.from_ns);
      call.end_ns = polling.until_ns;
    }
  }

  // The tests after the last other call of MPI of a thread; of several threads that poll, those that ended last.
  struct Polling {
    std::int64_t from_ns = 0, until_ns = 0;
  };
  Polling polling_at_end() const {
    Polling latest;
    for (const Track& track : rank_.tracks) {
      Polling own;
      for (std::size_t i = track.slices.size(); i-- > 0;) {
        const Kind& kind = trace_.kind_of(track.slices, i);
        if (kind.domain != mpi_ || mpi_ == 0) continue;
        if (!trace_.names[kind.name].starts_with("MPI_Test")) break;
        own.from_ns = track.slices.start_ns[i];
        own.until_ns = std::max(own.until_ns, track.slices.end_ns(i));
      }
      if (own.until_ns > latest.until_ns) latest = own;
    }
    return latest;
  }

  // The sends and receives that were open at the end.
  void find_pending() {
    if (unfinished_ == 0 || mpi_ == 0) return;
    for (const Track& track : rank_.tracks) {
      const Slices& slices = track.slices;
      for (std::size_t i = slices.size(); i-- > 0;) {
        if (slices.depth[i] == 0 && slices.end_ns(i) < rank_.end_ns) break;  // so do all before it
        const Kind& kind = trace_.kind_of(slices, i);
        if (kind.domain != mpi_ || !slices.number(i, unfinished_)) continue;
        const std::string_view name = trace_.names[kind.name];
        CollectiveCalls::Pending call{.operation = std::string(name),
                                      .sends = blocks_in_send(name),
                                      .receives = blocks_in_receive(name),
                                      .since_ns = slices.start_ns[i],
                                      .until_ns = slices.end_ns(i)};
        if (!call.sends && !call.receives) continue;
        slices.each_argument(i, [&](const Argument& argument) {
          if (argument.key == communicator_) call.communicator = identity_of(argument.text());
          if (argument.key == peer_) call.peer = static_cast<std::int32_t>(argument.number());
          if (argument.key == tag_) call.tag = static_cast<std::int32_t>(argument.number());
        });
        out_.pending.push_back(std::move(call));
      }
    }
  }

  // The slice is a wait for the request.
  void complete(const Track& track, std::size_t wait, std::uint64_t request) {
    const Slices& slices = track.slices;
    const auto found = open_.find(request);
    if (found == open_.end()) return;
    CollectiveCall& call = out_.calls[found->second.call];
    if (slices.end_ns(wait) < call.start_ns) return;  // of an earlier request with the same number
    const std::int64_t from = std::max(call.start_ns, slices.start_ns[wait]);
    if (found->second.ends_itself) {
      call.end_ns = std::min(call.end_ns, slices.end_ns(wait));  // another thread may record it later
      call.blocked_from_ns = call.polled_from_ns = std::min(from, call.end_ns);
    } else {
      call.end_ns = slices.end_ns(wait);
      call.blocked_from_ns = from;
      call.blocking = blocking_of(track);
      const bool polled = call.blocking == Blocking::helper && tests_[slices.kind[wait]] != 0;
      call.polled_from_ns = polled ? std::max(call.start_ns, polls_from_ns_) : from;
      if (slices.argument(wait, unfinished_)) call.unfinished = true;
    }
    open_.erase(found);
  }

  std::string open_slice() const {
    const Track* main = main_track(rank_);
    if (main == nullptr || unfinished_ == 0) return "";
    for (std::size_t i = main->slices.size(); i-- > 0;) {
      if (main->slices.end_ns(i) >= rank_.end_ns && main->slices.number(i, unfinished_)) {
        return trace_.name_of(main->slices, i);
      }
      if (main->slices.depth[i] == 0 && main->slices.end_ns(i) < rank_.end_ns) break;  // so do all before it
    }
    return "";
  }

  const Trace& trace_;
  const Rank& rank_;
  const NameId collective_ = name("collective"), enqueue_ = name("enqueue"), nccl_ = name("nccl"),
               start_ = name("MPI_Start"), wait_ = name("wait"), bytes_ = name("bytes"),
               communicator_ = name("communicator"), sequence_ = name("sequence"), members_ = name("members"),
               unfinished_ = name("unfinished"), request_ = name("request"), last_request_ = name("last_request"),
               torch_ = name("torch"), mpi_ = name("mpi"), peer_ = name("peer"), tag_ = name("tag");
  CollectiveCalls out_;
  std::unordered_map<NameId, std::uint64_t> identities_;
  std::unordered_map<NameId, std::uint32_t> operations_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> counts_;       // by communicator and operation
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> initialised_;  // by communicator and sequence
  std::vector<std::size_t> starts_;                                               // of persistent collectives
  std::vector<std::uint8_t> tests_;                                               // by kind: MPI_Test…
  std::int64_t polls_from_ns_ = 0;  // the first of the tests that follow each other
  struct Open {
    std::size_t call = 0;      // index
    bool ends_itself = false;  // its end is known without the wait
  };
  std::unordered_map<std::uint64_t, Open> open_;  // calls whose request was not completed yet, by request
};

}  // namespace collective_extraction

bool blocks_in_send(std::string_view function) {
  for (const std::string_view name : {"MPI_Send", "MPI_Ssend", "MPI_Rsend", "MPI_Bsend", "MPI_Sendrecv"}) {
    if (function.starts_with(name)) return !function.ends_with("_init");
  }
  return false;
}

bool blocks_in_receive(std::string_view function) {
  return function.starts_with("MPI_Sendrecv") || (function.starts_with("MPI_Recv") && !function.ends_with("_init")) ||
         function.starts_with("MPI_Mrecv");
}

CollectiveCalls collective_calls(const Trace& trace, const Rank& rank) {
  CollectiveCalls calls = collective_extraction::Extraction(trace, rank).run();
  if (trace.mixed_collectives) {
    calls.unnumbered += calls.calls.size();
    calls.calls.clear();
  }
  return calls;
}

Blocking blocking_of(const Track& track) {
  if (track.kind != TrackKind::thread) return Blocking::device;
  return track.main ? Blocking::always : Blocking::helper;
}

std::vector<CollectiveCalls> collective_calls(const Trace& trace) {
  std::vector<CollectiveCalls> all;
  for (const Rank& rank : trace.ranks) all.push_back(collective_calls(trace, rank));
  return all;
}

void cover(CollectiveCalls& calls, Intervals working, const Intervals& computing) {
  const auto any = [&](Blocking blocking) {
    return std::ranges::find(calls.calls, blocking, &CollectiveCall::blocking) != calls.calls.end();
  };
  const auto add = [&](Blocking blocking, const Intervals& more) {
    Intervals& covered = calls.covered[static_cast<std::size_t>(blocking)];
    covered.insert(covered.end(), more.begin(), more.end());
    covered = merged(std::move(covered));
  };
  if (any(Blocking::helper)) {
    add(Blocking::helper, working);
    add(Blocking::helper, computing);
  }
  // Traces of other tools show the host's backends (gloo) on tracks of their own.
  if (any(Blocking::device)) add(Blocking::device, computing.empty() ? working : computing);
}

}  // namespace paceline::analysis
