// SPDX-License-Identifier: Apache-2.0
// Point-to-point messages across ranks: which send belongs to which receive.
//
// MPI does not let messages overtake each other: of two sends from one rank to another on one communicator, the first
// is received by the first receive that fits both. So sends and receives are matched in the order in which they were
// begun, by communicator, sender, receiver and tag. NCCL's sends and receives have no tag.
//
// A receive from any source names no sender in a trace, and neither does the receiving half of MPI_Sendrecv. It is
// matched where only one rank has a message that fits and was sent before the receive ended. Where several ranks have
// one, the receive stays unmatched, and so do the later receives of those messages' kinds, because the order does not
// decide them any more. After events were lost on a rank, its messages stay unmatched, and so do all receives from any
// source; where the files of some ranks are missing, these are never matched.
//
// A non-blocking send or receive ends with the wait or test that completed its request.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

constexpr std::uint32_t no_rank = ~std::uint32_t{0};

// One side of a message.
struct MessageCall {
  std::uint32_t rank = 0;              // index into Trace::ranks
  std::uint32_t track = 0, slice = 0;  // the call that began it: index into Rank::tracks, and of its slices
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t blocked_from_ns = 0;  // its start; without blocking, the start of the call that completed it
  bool completed = true;             // false: the end is not known, and is that of the call that began it
  bool combined = false;             // one call sends and receives (MPI_Sendrecv)
  std::uint64_t bytes = 0;           // sent; of a receive the room for it
  std::int32_t tag = -1;             // -1: any, or not known
};

// At least one side is known.
struct Message {
  std::uint32_t sender = no_rank, receiver = no_rank;  // indices into Trace::ranks; no_rank where not known
  NameId communicator = 0;                             // its text; 0: not known
  std::optional<MessageCall> send, receive;

  bool matched() const { return send && receive; }
  // How long the receiver was blocked before the send began. 0 unless matched.
  std::int64_t late_sender_ns() const;
  // How long the sender was blocked before the receive began, in a send that could not end without it (a rendezvous).
  // A send that ended before the receive began was buffered and did not wait: 0. So is that of a call that receives as
  // well, because it may have waited for its own message. 0 unless matched.
  std::int64_t late_receiver_ns() const;
};

struct Messages {
  std::vector<Message> all;  // by the start of the send, or of the receive where there is no send
  std::uint64_t matched = 0, unmatched_sends = 0, unmatched_receives = 0;
};

// Cost: n log n in the calls, linear in the slices, which several threads read; a receive from any source is linear in
// the senders.
Messages match_messages(const Trace& trace);

// The messages from one rank to another.
struct MessagePair {
  int sender = 0, receiver = 0;             // numbers of the ranks
  std::uint64_t messages = 0, matched = 0;  // all that were sent; those whose receive is known
  std::uint64_t bytes = 0;                  // of all that were sent
  std::int64_t late_sender_ns = 0;          // waits of the receiver, over the matched messages
  std::int64_t late_receiver_ns = 0;        // waits of the sender

  std::int64_t waiting_ns() const { return late_sender_ns + late_receiver_ns; }
};

// Who sends how much to whom: a sparse matrix.
struct MessageMatrix {
  std::vector<MessagePair> pairs;  // by sender, then receiver
  std::uint64_t unmatched_sends = 0, unmatched_receives = 0;
};

// A send counts where its receiver is known, also where the receive is not. Cost: n log n in the messages.
MessageMatrix message_matrix(const Trace& trace, const Messages& messages);

}  // namespace paceline::analysis
