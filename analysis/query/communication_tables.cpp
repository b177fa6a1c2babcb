// SPDX-License-Identifier: Apache-2.0
// The tables collectives and messages.
#include <algorithm>

#include "analysis/query/row_table.h"
#include "analysis/query/run_data.h"

namespace paceline::analysis {
namespace communication_tables {

QueryCell whole(std::integral auto value) { return static_cast<std::int64_t>(value); }

// Of one call: the call, and the collective that it belongs to or nullptr.
struct CallOf {
  const CollectiveCall& call;
  const Collective* collective;
  const MemberCall* member;
};

CallOf call_of(RunData& data, std::size_t row) {
  const CollectiveEntry& entry = data.collectives().entries[row];
  const CollectiveCall& call = data.index().calls()[entry.rank].calls[entry.call];
  if (entry.collective == CollectiveEntry::unmatched) return {call, nullptr, nullptr};
  const Collective& collective = data.index().collectives().matched[entry.collective];
  const auto member = std::ranges::lower_bound(collective.calls, entry.rank, {}, &MemberCall::rank);
  return {call, &collective, &*member};
}

double estimated_calls(const RunData& data) {
  double slices = 0;
  for (const auto& place : data.tracks()) slices += static_cast<double>(place.of->slices.size());
  return std::max(1.0, slices / 20);
}

std::int64_t id_of(const RunData& data, const MessageCall& call) {
  return slice_id(data.first_track(call.rank) + call.track, call.slice);
}

}  // namespace communication_tables

std::unique_ptr<QueryTable> collectives_table(RunData& data) {
  using namespace communication_tables;
  const auto& ranks = data.trace().ranks;
  const auto entry = [&data](auto read) {
    return [&data, read](std::size_t row) { return read(data.collectives().entries[row]); };
  };
  const auto call = [&data](auto read) { return [&data, read](std::size_t row) { return read(call_of(data, row)); }; };
  const auto timed = [call](auto read) {
    return call(
        [read](const CallOf& of) { return of.collective != nullptr && of.collective->timed ? read(of) : QueryCell(); });
  };
  const double count = estimated_calls(data);
  std::vector<RowColumn> columns = {
      {{"slice", "INTEGER", "", "the call (slices.id)"},
       [&data](std::size_t row) {
         const CollectiveEntry& of = data.collectives().entries[row];
         const CollectiveCall& made = data.index().calls()[of.rank].calls[of.call];
         return whole(slice_id(data.first_track(of.rank) + made.track, made.slice));
       },
       Lookup::index},
      {{"collective", "INTEGER", "", "number of the collective, equal for its calls on all ranks; NULL if unmatched"},
       entry([](const CollectiveEntry& of) {
         return of.collective == CollectiveEntry::unmatched ? QueryCell() : whole(of.collective);
       }),
       Lookup::index,
       1 / std::max(1.0, static_cast<double>(ranks.size()))},
      {{"rank", "INTEGER", "", "rank of the process"},
       entry([&ranks](const CollectiveEntry& of) { return whole(ranks[of.rank].rank); }),
       Lookup::ascending,
       static_cast<double>(ranks.size()) / count},
      {{"operation", "TEXT", "", "'MPI_Allreduce', 'ncclAllReduce', …"},
       [&data](std::size_t row) {
         const CollectiveEntry& of = data.collectives().entries[row];
         const CollectiveCalls& calls = data.index().calls()[of.rank];
         return QueryCell(std::string_view(calls.operations[calls.calls[of.call].operation]));
       }},
      {{"communicator", "TEXT", "", "name of the communicator; NULL where it is not known"},
       [&data](std::size_t row) {
         const auto& names = data.collectives().communicators;
         const auto known = names.find(call_of(data, row).call.communicator);
         return known == names.end() ? QueryCell() : QueryCell(std::string_view(known->second));
       }},
      {{"members", "INTEGER", "", "ranks of the communicator; NULL where it is not known"}, call([](const CallOf& of) {
         const std::uint32_t members = of.collective != nullptr ? of.collective->members : of.call.members;
         return members == 0 ? QueryCell() : whole(members);
       })},
      {{"sequence", "INTEGER", "", "number of the call on its communicator, from 0"},
       call([](const CallOf& of) { return whole(of.call.sequence); })},
      {{"bytes", "INTEGER", "bytes", "what this rank gave"},
       call([](const CallOf& of) { return whole(of.call.bytes); })},
      {{"start_ns", "INTEGER", "ns", "start of the call, since the run's zero"},
       call([](const CallOf& of) { return whole(of.call.start_ns); }),
       Lookup::index},
      {{"end_ns", "INTEGER", "ns", "end, or that of the wait that completed a non-blocking call"},
       call([](const CallOf& of) { return whole(of.call.end_ns); }),
       Lookup::index},
      {{"duration_ns", "INTEGER", "ns", "end - start"},
       call([](const CallOf& of) { return whole(of.call.end_ns - of.call.start_ns); })},
      {{"wait_ns", "INTEGER", "ns", "time blocked before the last rank came; NULL where unmatched or not timed"},
       timed([](const CallOf& of) { return whole(of.collective->wait_ns(*of.member)); })},
      {{"transfer_ns", "INTEGER", "ns", "from the last start to the last end, equal for all ranks; NULL as wait_ns"},
       timed([](const CallOf& of) { return whole(of.collective->transfer_ns); })},
      {{"arrival", "INTEGER", "", "place in the order of starts, 0 is the first; NULL where unmatched"},
       entry([](const CollectiveEntry& of) {
         return of.collective == CollectiveEntry::unmatched ? QueryCell() : whole(of.arrival);
       })},
      {{"last_rank", "INTEGER", "", "rank that came last; NULL as wait_ns"},
       timed([&ranks](const CallOf& of) { return whole(ranks[of.collective->last_rank].rank); })},
  };
  return std::make_unique<RowTable>(
      "collectives", "collective operations: one row for each call of each rank", std::move(columns),
      [&data] { return data.collectives().entries.size(); }, count);
}

std::unique_ptr<QueryTable> messages_table(RunData& data) {
  using namespace communication_tables;
  const Trace& trace = data.trace();
  const auto of = [&data](auto read) {
    return [&data, read](std::size_t row) { return read(data.messages().all[row]); };
  };
  const auto side = [of](std::optional<MessageCall> Message::*which, auto read) {
    return of([which, read](const Message& message) { return message.*which ? read(*(message.*which)) : QueryCell(); });
  };
  const auto rank = [of, &trace](std::uint32_t Message::*which) {
    return of([which, &trace](const Message& message) {
      return message.*which == no_rank ? QueryCell() : whole(trace.ranks[message.*which].rank);
    });
  };
  const auto slice = [&data](const MessageCall& call) { return whole(id_of(data, call)); };
  const auto start = [](const MessageCall& call) { return whole(call.start_ns); };
  const auto end = [](const MessageCall& call) { return call.completed ? whole(call.end_ns) : QueryCell(); };
  const double count = estimated_calls(data), ranks_share = static_cast<double>(trace.ranks.size()) / count;
  std::vector<RowColumn> columns = {
      {{"sender", "INTEGER", "", "rank that sends; NULL where not known"},
       rank(&Message::sender),
       Lookup::index,
       ranks_share},
      {{"receiver", "INTEGER", "", "rank that receives; NULL where not known"},
       rank(&Message::receiver),
       Lookup::index,
       ranks_share},
      {{"communicator", "TEXT", "", "name of the communicator; NULL where not known"},
       of([&trace](const Message& message) {
         return message.communicator == 0 ? QueryCell()
                                          : QueryCell(std::string_view(trace.names[message.communicator]));
       })},
      {{"tag", "INTEGER", "", "tag; NULL where not known, as for NCCL"}, of([](const Message& message) {
         const std::int32_t tag = message.send ? message.send->tag : message.receive->tag;
         return tag < 0 ? QueryCell() : whole(tag);
       })},
      {{"bytes", "INTEGER", "bytes", "size of the message; without the send, the room that the receive gave"},
       of([](const Message& message) { return whole(message.send ? message.send->bytes : message.receive->bytes); })},
      {{"send_start_ns", "INTEGER", "ns", "start of the send; NULL where the send is not known"},
       side(&Message::send, start),
       Lookup::index},
      {{"send_end_ns", "INTEGER", "ns", "end of the send, or of the wait that completed it; NULL where not known"},
       side(&Message::send, end)},
      {{"receive_start_ns", "INTEGER", "ns", "start of the receive; NULL where the receive is not known"},
       side(&Message::receive, start),
       Lookup::index},
      {{"receive_end_ns", "INTEGER", "ns",
        "end of the receive, or of the wait that completed it; NULL where not known"},
       side(&Message::receive, end)},
      {{"late_sender_ns", "INTEGER", "ns",
        "time that the receiver was blocked before the send began; NULL if unmatched"},
       of([](const Message& message) { return message.matched() ? whole(message.late_sender_ns()) : QueryCell(); })},
      {{"late_receiver_ns", "INTEGER", "ns",
        "time that the sender was blocked before the receive began; NULL if unmatched"},
       of([](const Message& message) { return message.matched() ? whole(message.late_receiver_ns()) : QueryCell(); })},
      {{"send_slice", "INTEGER", "", "the call that began the send (slices.id)"},
       side(&Message::send, slice),
       Lookup::index},
      {{"receive_slice", "INTEGER", "", "the call that began the receive (slices.id)"},
       side(&Message::receive, slice),
       Lookup::index},
  };
  return std::make_unique<RowTable>(
      "messages", "point-to-point messages: a send and the receive that it was matched with, or one of them alone",
      std::move(columns), [&data] { return data.messages().all.size(); }, count);
}

}  // namespace paceline::analysis
