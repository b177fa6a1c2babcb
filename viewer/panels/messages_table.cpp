// SPDX-License-Identifier: Apache-2.0
// One row for each message from rank to rank, with the time that either side waited for the other.
#include <algorithm>

#include "analysis/communication/messages.h"
#include "analysis/run/run_analysis.h"
#include "viewer/panels/tables.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace messages_table {

using analysis::Message;
using analysis::MessageCall;

TableRow row_of(const Run& run, const Message& message) {
  const auto rank_cell = [&](std::uint32_t rank) {
    return rank == analysis::no_rank ? TableCell{"not known"}
                                     : TableCell{QString::number(run.trace.ranks[rank].rank), double(rank)};
  };
  const MessageCall& first = message.send ? *message.send : *message.receive;
  // The side that waited, else the sender.
  const bool receiver_waited = message.receive && message.late_sender_ns() > message.late_receiver_ns();
  const MessageCall& shown = receiver_waited ? *message.receive : first;
  TableRow row;
  row.place.slice = SliceRef{.rank = shown.rank, .track = shown.track, .slice = shown.slice};
  const TableCell none{"–"};
  row.cells = {rank_cell(message.sender),
               rank_cell(message.receiver),
               {count_text(first.bytes) + " B", double(first.bytes), "B"},
               first.tag < 0 ? none : TableCell{QString::number(first.tag), double(first.tag)},
               {shown_name(run.trace.names[message.communicator], 60)},
               time_cell(run, first.start_ns),
               message.matched() ? duration_cell(message.receive->end_ns - message.send->start_ns) : none,
               message.matched() ? duration_cell(message.late_sender_ns()) : none,
               message.matched() ? duration_cell(message.late_receiver_ns()) : none};
  return row;
}

TableContent make(const TableQuestion& question, const Ticket& ticket) {
  const analysis::Messages messages = analysis::match_messages(question.run->trace);
  const auto concerns = [&](const Message& message) {
    return (message.sender != analysis::no_rank && question.part.on(message.sender)) ||
           (message.receiver != analysis::no_rank && question.part.on(message.receiver));
  };
  std::vector<const Message*> chosen;
  for (const Message& message : messages.all) {
    const std::int64_t start_ns = message.send ? message.send->start_ns : message.receive->start_ns;
    if (question.contains(start_ns) && concerns(message)) chosen.push_back(&message);
  }
  const std::size_t all = chosen.size(), shown = std::min(all, most_table_rows);
  std::ranges::partial_sort(chosen, chosen.begin() + std::ptrdiff_t(shown), std::greater(), [](const Message* message) {
    return message->late_sender_ns() + message->late_receiver_ns();
  });
  TableContent content;
  for (std::size_t i = 0; i < shown && !ticket.cancelled(); ++i) {
    content.rows.push_back(row_of(*question.run, *chosen[i]));
  }
  content.note =
      plural_text(all, "message ", "messages ") + question.where() + cut_text(shown, all, "with the longest waits");
  return content;
}

}  // namespace messages_table

TableKind messages_table_kind() {
  return {.name = "Messages",
          .columns = {{"From", "rank that sends"},
                      {"To", "rank that receives"},
                      {"Size", "bytes sent; without the send, the room that the receive gave"},
                      {"Tag", "of MPI"},
                      {"Communicator", "the group of ranks", false},
                      {"Sent", "start of the send, or of the receive where the send is not known"},
                      {"Took", "from the start of the send to the end of the receive"},
                      {"Late sender", "time that the receiver was blocked before the send began"},
                      {"Late receiver", "time that the sender was blocked before the receive began"}},
          .sorted_by = 7,
          .of_range = true,
          .make = messages_table::make};
}

}  // namespace paceline::viewer
