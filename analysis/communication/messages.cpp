// SPDX-License-Identifier: Apache-2.0
#include "analysis/communication/messages.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>

#include "analysis/trace/parallel.h"

namespace paceline::analysis {

std::int64_t Message::late_sender_ns() const {
  if (!matched()) return 0;
  return std::max<std::int64_t>(std::min(send->start_ns, receive->end_ns) - receive->blocked_from_ns, 0);
}

std::int64_t Message::late_receiver_ns() const {
  if (!matched() || send->combined || !send->completed || send->end_ns < receive->start_ns) return 0;
  return std::max<std::int64_t>(receive->start_ns - send->blocked_from_ns, 0);
}

namespace message_matching {

constexpr std::int32_t any = -1, nobody = -2;

enum class Role : std::uint8_t { none, send, receive, both, start, send_init, receive_init };

// What a function does with messages, by its name: "MPI_Isend", "ncclRecv", also in Fortran's spelling.
Role role_of(std::string_view function) {
  std::string name;
  for (const char c : function) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
  if (has("probe")) return Role::none;
  if (has("send_init")) return Role::send_init;
  if (has("recv_init")) return Role::receive_init;
  if (has("sendrecv")) return Role::both;
  if (name == "mpi_start") return Role::start;
  if (has("send")) return Role::send;
  return has("recv") ? Role::receive : Role::none;
}

struct Call : MessageCall {
  std::int32_t peer = any;  // in the communicator
  NameId communicator = 0;
  std::uint64_t request = 0;  // that another call completes; 0 = none
};

// The sends and receives of one rank, in the order of their starts.
struct RankCalls {
  std::vector<Call> sends, receives;
};

class Extraction {
 public:
  Extraction(const Trace& trace, const std::vector<Role>& roles, std::uint32_t rank)
      : trace_(trace), rank_(trace.ranks[rank]), roles_(roles), index_(rank) {}

  RankCalls run() {
    for (std::uint32_t t = 0; t < rank_.tracks.size(); ++t) look_at(t, rank_.tracks[t].slices);
    give_starts_a_direction();
    if (!open_.empty()) complete();
    for (std::vector<Call>* calls : {&out_.sends, &out_.receives}) {
      std::ranges::stable_sort(*calls, {}, &Call::start_ns);
    }
    return std::move(out_);
  }

 private:
  using Shape = std::tuple<NameId, std::int32_t, std::int32_t, std::uint64_t>;  // communicator, peer, tag, bytes
  NameId name(const char* text) const { return trace_.names.find(text); }
  static Shape shape_of(const Call& call) { return {call.communicator, call.peer, call.tag, call.bytes}; }

  void look_at(std::uint32_t track, const Slices& slices) {
    for (std::uint32_t i = 0; i < slices.size(); ++i) {
      const Role role = roles_[slices.kind[i]];
      if (role == Role::none) continue;
      Call call;
      call.rank = index_, call.track = track, call.slice = i;
      call.start_ns = call.blocked_from_ns = slices.start_ns[i];
      call.end_ns = slices.end_ns(i);
      bool done = false, addressed = false;
      slices.each_argument(i, [&](const Argument& argument) {
        if (argument.key == bytes_) call.bytes = argument.whole();
        if (argument.key == communicator_) call.communicator = argument.text();
        if (argument.key == tag_) call.tag = static_cast<std::int32_t>(argument.number());
        if (argument.key == unfinished_) call.completed = false;
        if (argument.key == peer_) call.peer = static_cast<std::int32_t>(argument.number()), addressed = true;
        if (argument.key == request_) done = call.request != 0, call.request = argument.whole();
      });
      if (done) call.request = 0;  // the call completed its own request
      call.combined = role == Role::both;
      if (role == Role::start && !addressed) continue;  // of a collective
      add(role, call);
    }
  }

  void add(Role role, const Call& call) {
    if (call.peer == nobody) return;
    if (role == Role::send_init) sends_.insert(shape_of(call));
    if (role == Role::receive_init) receives_.insert(shape_of(call));
    if (role == Role::start) starts_.push_back(call);
    if ((role == Role::send || role == Role::both) && call.peer >= 0) push(out_.sends, call);
    if (role == Role::receive) push(out_.receives, call);
    if (role != Role::both) return;
    Call received = call;  // the trace has the arguments of the sending half only
    received.peer = received.tag = any;
    received.bytes = 0;
    push(out_.receives, received);
  }

  void push(std::vector<Call>& calls, const Call& call) {
    if (call.request != 0) open_.push_back(call.request);
    calls.push_back(call);
  }

  // The start of a persistent operation has the arguments of its initialisation, which decide what it is.
  void give_starts_a_direction() {
    for (const Call& call : starts_) {
      const bool sends = sends_.contains(shape_of(call)), receives = receives_.contains(shape_of(call));
      if (sends == receives) continue;
      push(sends ? out_.sends : out_.receives, call);
    }
  }

  // Ends the calls that returned early with the wait or test that completed their request.
  void complete() {
    std::unordered_map<std::uint64_t, std::pair<std::int64_t, std::int64_t>> ends;  // start and end of that wait
    std::ranges::sort(open_);
    for (const Track& track : rank_.tracks) {
      const Slices& slices = track.slices;
      for (std::size_t i = 0; i < slices.size(); ++i) {
        if (slices.record[i] == 0 || trace_.kind_of(slices, i).category != wait_) continue;
        slices.each_argument(i, [&](const Argument& argument) {
          if (argument.key != request_ || !std::ranges::binary_search(open_, argument.whole())) return;
          ends.try_emplace(argument.whole(), slices.start_ns[i], slices.end_ns(i));
        });
      }
    }
    for (std::vector<Call>* calls : {&out_.sends, &out_.receives}) {
      for (Call& call : *calls) {
        if (call.request == 0) continue;
        const auto found = ends.find(call.request);
        call.completed = found != ends.end() && found->second.second >= call.start_ns;
        if (!call.completed) continue;
        call.blocked_from_ns = std::max(call.start_ns, found->second.first);
        call.end_ns = found->second.second;
      }
    }
  }

  const Trace& trace_;
  const Rank& rank_;
  const std::vector<Role>& roles_;  // by kind
  const std::uint32_t index_;
  const NameId bytes_ = name("bytes"), communicator_ = name("communicator"), tag_ = name("tag"), peer_ = name("peer"),
               request_ = name("request"), unfinished_ = name("unfinished"), wait_ = name("wait");
  RankCalls out_;
  std::vector<Call> starts_;
  std::set<Shape> sends_, receives_;  // that were initialised
  std::vector<std::uint64_t> open_;   // requests that other calls complete
};

std::vector<Role> roles_of(const Trace& trace) {
  const NameId message = trace.names.find("point-to-point");
  std::vector<Role> roles(trace.kinds.size(), Role::none);
  for (KindId kind = 0; kind < trace.kinds.size(); ++kind) {
    const Kind& of = trace.kinds[kind];
    if (message != 0 && of.category == message) roles[kind] = role_of(trace.names[of.name]);
  }
  return roles;
}

// Turns a rank of a communicator into an index into Trace::ranks.
class Members {
 public:
  explicit Members(const Trace& trace) : trace_(trace) {
    for (std::uint32_t r = 0; r < trace.ranks.size(); ++r) {
      const Rank& rank = trace.ranks[r];
      world_[rank.rank].push_back(r);
      for (std::size_t c = 0; c < rank.communicators.size(); ++c) {
        const std::int32_t own = c < rank.communicator_ranks.size() ? rank.communicator_ranks[c] : -1;
        if (own >= 0) members_[{rank.communicators[c], own}].push_back(r);
        if (own >= 0) ranked_.insert(rank.communicators[c]);
      }
    }
  }

  // no_rank where it is not known or was not recorded. The two groups of an inter-communicator have the same ranks, and
  // the other one is meant.
  std::uint32_t find(NameId communicator, std::int32_t peer, std::uint32_t self) const {
    if (ranked_.contains(communicator)) {
      const auto found = members_.find({communicator, peer});
      if (found == members_.end()) return no_rank;
      if (found->second.size() == 1) return found->second.front();
      std::uint32_t other = no_rank;
      for (const std::uint32_t rank : found->second) {
        if (rank == self) continue;
        if (other != no_rank) return no_rank;
        other = rank;
      }
      return other;
    }
    // Without the members' ranks, only a communicator of all ranks has known ones.
    const Communicator* known = trace_.communicators.find(communicator);
    const auto world_size = static_cast<std::uint32_t>(trace_.ranks[self].world_size);
    if (known != nullptr && known->members != 0 && known->members != world_size) return no_rank;
    const auto found = world_.find(peer);
    return found != world_.end() && found->second.size() == 1 ? found->second.front() : no_rank;
  }

 private:
  const Trace& trace_;
  std::map<std::pair<NameId, std::int32_t>, std::vector<std::uint32_t>> members_;
  std::set<NameId> ranked_;
  std::map<int, std::vector<std::uint32_t>> world_;
};

// When the first events of a rank were lost; the order of its later messages is not known.
std::int64_t first_loss(const Rank& rank) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const LostInterval& loss : rank.lost) first = std::min(first, loss.start_ns);
  for (const Track& track : rank.tracks) {
    for (const LostInterval& loss : track.lost) first = std::min(first, loss.start_ns);
  }
  return first;
}

// The messages from one rank to another on one communicator that no receive has taken yet.
struct Channel {
  struct Waiting {
    std::int64_t start_ns = 0;
    std::uint32_t message = 0;  // index into Messages::all
  };
  std::map<std::int32_t, std::deque<Waiting>> by_tag;
  std::set<std::int32_t> undecided;  // tags
  bool all_undecided = false;

  // The first message that fits and began by `latest_ns`; nullptr where there is none.
  std::deque<Waiting>* first(std::int32_t tag, std::int64_t latest_ns) {
    std::deque<Waiting>* best = nullptr;
    const auto consider = [&](std::deque<Waiting>& of) {
      if (of.empty() || of.front().start_ns > latest_ns) return;
      if (best == nullptr || of.front().start_ns < best->front().start_ns) best = &of;
    };
    if (tag == any) {
      for (auto& [other, of] : by_tag) consider(of);
    } else if (const auto found = by_tag.find(tag); found != by_tag.end()) {
      consider(found->second);
    }
    return best;
  }
  bool is_undecided(std::int32_t tag) const {
    return all_undecided || (tag == any ? !undecided.empty() : undecided.contains(tag));
  }
  void leave_undecided(std::int32_t tag) {
    if (tag == any) all_undecided = true;
    undecided.insert(tag);
  }
};

class Matching {
 public:
  explicit Matching(const Trace& trace) : trace_(trace), members_(trace) {
    for (const Rank& rank : trace.ranks) {
      first_loss_.push_back(first_loss(rank));
      all_known_until_ = std::min(all_known_until_, first_loss_.back());
      if (static_cast<std::size_t>(std::max(rank.world_size, 0)) > trace.ranks.size()) all_known_until_ = rank.start_ns;
    }
  }

  Messages run() {
    const std::vector<Role> roles = roles_of(trace_);
    std::vector<RankCalls> ranks(trace_.ranks.size());
    parallel_for(ranks.size(),
                 [&](std::size_t r) { ranks[r] = Extraction(trace_, roles, static_cast<std::uint32_t>(r)).run(); });
    for (const RankCalls& rank : ranks) {
      for (const Call& call : rank.sends) add_send(call);
    }
    for (const RankCalls& rank : ranks) {
      for (const Call& call : rank.receives) add_receive(call);
    }
    count();
    return std::move(out_);
  }

 private:
  using Key = std::tuple<NameId, std::uint32_t>;  // communicator and receiver

  bool lost_before(const Call& call, std::uint32_t peer) const {
    return call.start_ns >= first_loss_[call.rank] || (peer != no_rank && call.start_ns >= first_loss_[peer]);
  }

  void add_send(const Call& call) {
    Message message;
    message.sender = call.rank;
    message.receiver = members_.find(call.communicator, call.peer, call.rank);
    message.communicator = call.communicator;
    message.send = call;
    if (message.receiver != no_rank && !lost_before(call, message.receiver)) {
      channels_[{call.communicator, message.receiver}][call.rank].by_tag[call.tag].push_back(
          {call.start_ns, static_cast<std::uint32_t>(out_.all.size())});
    }
    out_.all.push_back(message);
  }

  void add_receive(const Call& call) {
    const std::uint32_t sender = call.peer == any ? no_rank : members_.find(call.communicator, call.peer, call.rank);
    if (const auto message = find(call, sender)) {
      out_.all[*message].receive = call;
      return;
    }
    Message message;
    message.sender = sender;
    message.receiver = call.rank;
    message.communicator = call.communicator;
    message.receive = call;
    out_.all.push_back(message);
  }

  std::optional<std::uint32_t> find(const Call& call, std::uint32_t sender) {
    const auto found = channels_.find({call.communicator, call.rank});
    if (found == channels_.end() || lost_before(call, sender)) return std::nullopt;
    if (call.peer != any) {
      const auto channel = found->second.find(sender);
      if (sender == no_rank || channel == found->second.end()) return std::nullopt;
      return take(channel->second, sender, call);
    }
    std::vector<std::pair<const std::uint32_t, Channel>*> fitting;
    for (auto& channel : found->second) {
      if (channel.second.first(call.tag, latest_start(call, channel.first)) != nullptr) fitting.push_back(&channel);
    }
    if (fitting.size() == 1 && call.start_ns < all_known_until_) {
      return take(fitting.front()->second, fitting.front()->first, call);
    }
    for (auto* channel : fitting) channel->second.leave_undecided(call.tag);
    return std::nullopt;
  }

  std::optional<std::uint32_t> take(Channel& channel, std::uint32_t sender, const Call& call) {
    if (channel.is_undecided(call.tag)) return std::nullopt;
    std::deque<Channel::Waiting>* first = channel.first(call.tag, latest_start(call, sender));
    if (first == nullptr) return std::nullopt;
    const std::uint32_t message = first->front().message;
    first->pop_front();
    return message;
  }

  // No message is received before it was sent, as far as the clocks are exact.
  std::int64_t latest_start(const Call& call, std::uint32_t sender) const {
    if (!call.completed) return std::numeric_limits<std::int64_t>::max();
    const double error = trace_.ranks[call.rank].clock_error_ns + trace_.ranks[sender].clock_error_ns;
    return call.end_ns + static_cast<std::int64_t>(std::min(error, 1e15));
  }

  void count() {
    const auto start = [](const Message& message) {
      return message.send ? message.send->start_ns : message.receive->start_ns;
    };
    std::ranges::stable_sort(out_.all, {}, start);
    for (const Message& message : out_.all) {
      if (message.matched()) ++out_.matched;
      if (!message.receive) ++out_.unmatched_sends;
      if (!message.send) ++out_.unmatched_receives;
    }
  }

  const Trace& trace_;
  const Members members_;
  std::int64_t all_known_until_ = std::numeric_limits<std::int64_t>::max();  // until then the messages of all ranks are
  std::vector<std::int64_t> first_loss_;                                     // by rank
  std::map<Key, std::map<std::uint32_t, Channel>> channels_;                 // by sender
  Messages out_;
};

}  // namespace message_matching

Messages match_messages(const Trace& trace) { return message_matching::Matching(trace).run(); }

MessageMatrix message_matrix(const Trace& trace, const Messages& messages) {
  MessageMatrix matrix{
      .pairs = {}, .unmatched_sends = messages.unmatched_sends, .unmatched_receives = messages.unmatched_receives};
  std::map<std::pair<int, int>, MessagePair> pairs;
  for (const Message& message : messages.all) {
    if (!message.send || message.receiver == no_rank) continue;
    const int sender = trace.ranks[message.sender].rank, receiver = trace.ranks[message.receiver].rank;
    MessagePair& pair = pairs[{sender, receiver}];
    pair.sender = sender, pair.receiver = receiver;
    ++pair.messages;
    pair.matched += message.matched();
    pair.bytes += message.send->bytes;
    pair.late_sender_ns += message.late_sender_ns();
    pair.late_receiver_ns += message.late_receiver_ns();
  }
  for (const auto& [ranks, pair] : pairs) matrix.pairs.push_back(pair);
  return matrix;
}

}  // namespace paceline::analysis
