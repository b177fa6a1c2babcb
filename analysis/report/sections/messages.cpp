// SPDX-License-Identifier: Apache-2.0
// Who sends how much to whom, and who waits for whom in it.
#include <algorithm>
#include <functional>
#include <map>

#include "analysis/report/sections.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace messages_section {

constexpr std::size_t most_pairs = 15;         // in text, Markdown and HTML
constexpr std::size_t most_matrix_ranks = 16;  // of a matrix as a table

// One figure of a pair, for the matrix.
struct Figure {
  const char *id, *title;
  double (*value)(const MessagePair&);
  std::string (*write)(double);
};
constexpr Figure figures_of_pairs[] = {
    {"message-counts", "Messages", [](const MessagePair& pair) { return static_cast<double>(pair.messages); }, count},
    {"message-bytes", "Bytes", [](const MessagePair& pair) { return static_cast<double>(pair.bytes); }, bytes},
    {"message-waiting", "Waiting in messages",
     [](const MessagePair& pair) { return 1e-9 * static_cast<double>(pair.waiting_ns()); }, seconds}};

// The ranks that send or receive, rising.
std::vector<int> ranks_of(const MessageMatrix& matrix) {
  std::vector<int> ranks;
  for (const MessagePair& pair : matrix.pairs) {
    ranks.push_back(pair.sender);
    ranks.push_back(pair.receiver);
  }
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  if (run.unmatched_messages == 0) return;
  out.push_back({Severity::info, fmt::format("Messages were not matched: {} sends and receives are more than {}. Their "
                                             "times are in the table of ranges and calls.",
                                             count(static_cast<double>(run.unmatched_messages)),
                                             count(static_cast<double>(most_matched_messages)))});
}

void pairs_table(const MessageMatrix& matrix, std::vector<Table>& out) {
  Table table{.id = "messages",
              .title = "Messages between ranks",
              .columns = {"from rank", "to rank", "messages", "bytes", "late sender", "late receiver"},
              .text_columns = 0,
              .note =
                  "Late sender: the time that the receiver was blocked before the send began. Late receiver: the "
                  "time that the sender was blocked, in a send that could not end without its receive, before the "
                  "receive began."};
  std::vector<MessagePair> pairs = matrix.pairs;
  std::ranges::stable_sort(pairs, std::greater{},
                           [](const MessagePair& pair) { return std::pair(pair.waiting_ns(), pair.bytes); });
  if (pairs.size() > most_pairs) {
    table.title += fmt::format(": the {} pairs of {} with the longest waits", most_pairs,
                               count(static_cast<double>(pairs.size())));
    pairs.resize(most_pairs);
  }
  for (const MessagePair& pair : pairs) {
    const bool matched = pair.matched > 0;
    table.rows.push_back({std::to_string(pair.sender), std::to_string(pair.receiver),
                          count(static_cast<double>(pair.messages)), bytes(static_cast<double>(pair.bytes)),
                          matched ? duration(pair.late_sender_ns) : no_value,
                          matched ? duration(pair.late_receiver_ns) : no_value});
  }
  out.push_back(std::move(table));
}

// The matrices of few ranks, with the senders as rows. Of two ranks the pairs show as much.
void matrix_tables(const MessageMatrix& matrix, std::vector<Table>& out) {
  const std::vector<int> ranks = ranks_of(matrix);
  if (ranks.size() < 3 || ranks.size() > most_matrix_ranks) return;
  for (const Figure& figure : figures_of_pairs) {
    Table table{.id = figure.id,
                .title = fmt::format("{}: from the rank of the row to that of the column", figure.title),
                .columns = {"from \\ to"}};
    for (const int rank : ranks) table.columns.push_back(std::to_string(rank));
    for (const int rank : ranks) {
      auto& row = table.rows.emplace_back(std::vector<std::string>(ranks.size() + 1, no_value));
      row[0] = std::to_string(rank);
    }
    const auto place = [&](int rank) {
      return static_cast<std::size_t>(std::ranges::lower_bound(ranks, rank) - ranks.begin());
    };
    for (const MessagePair& pair : matrix.pairs) {
      table.rows[place(pair.sender)][place(pair.receiver) + 1] = figure.write(figure.value(pair));
    }
    out.push_back(std::move(table));
  }
}

void tables(const RunAnalysis& run, std::vector<Table>& out) {
  if (!run.messages) return;
  pairs_table(*run.messages, out);
  matrix_tables(*run.messages, out);
}

void figures(const RunAnalysis& run, Json& out) {
  if (run.unmatched_messages > 0) out["messages"] = {{"not_matched", run.unmatched_messages}};
  if (!run.messages) return;
  Json& messages = out["messages"] = {{"unmatched_sends", run.messages->unmatched_sends},
                                      {"unmatched_receives", run.messages->unmatched_receives},
                                      {"pairs", Json::array()}};
  for (const MessagePair& pair : run.messages->pairs) {
    messages["pairs"].push_back({{"sender", pair.sender},
                                 {"receiver", pair.receiver},
                                 {"messages", pair.messages},
                                 {"matched", pair.matched},
                                 {"bytes", pair.bytes},
                                 {"late_sender_ns", pair.late_sender_ns},
                                 {"late_receiver_ns", pair.late_receiver_ns}});
  }
}

// A heat map for each figure that is not 0 everywhere. Of more than 64 ranks, neighbours share a cell, which has their
// sum.
void charts(const RunAnalysis& run, std::vector<Chart>& out) {
  if (!run.messages) return;
  constexpr std::size_t most_cells = 64;
  const std::vector<int> ranks = ranks_of(*run.messages);
  if (ranks.size() < 3) return;
  const std::size_t group = (ranks.size() + most_cells - 1) / most_cells, cells = (ranks.size() + group - 1) / group;
  nlohmann::json labels = nlohmann::json::array();
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const int first = ranks[cell * group], last = ranks[std::min((cell + 1) * group, ranks.size()) - 1];
    labels.push_back(first == last ? fmt::format("{}", first) : fmt::format("{}–{}", first, last));
  }
  const auto cell_of = [&](int rank) {
    return static_cast<std::size_t>(std::ranges::lower_bound(ranks, rank) - ranks.begin()) / group;
  };
  for (const Figure& figure : figures_of_pairs) {
    std::map<std::pair<std::size_t, std::size_t>, double> sums;
    for (const MessagePair& pair : run.messages->pairs) {
      sums[{cell_of(pair.sender), cell_of(pair.receiver)}] += figure.value(pair);
    }
    double most = 0;
    nlohmann::json values = nlohmann::json::array();
    for (const auto& [cell, sum] : sums) {
      if (sum <= 0) continue;
      most = std::max(most, sum);
      values.push_back({{"x", cell.second}, {"y", cell.first}, {"v", sum}, {"text", figure.write(sum)}});
    }
    if (values.empty()) continue;
    out.push_back({.title = fmt::format("{} from rank to rank", figure.title),
                   .kind = "heat",
                   .data = {{"cells", values},
                            {"columns", labels},
                            {"rows", labels},
                            {"x", "to rank"},
                            {"y", "from rank"},
                            {"full", most},
                            {"full_text", figure.write(most)}},
                   .height = 340});
  }
}

}  // namespace messages_section

RunSection sections::messages() {
  using namespace messages_section;
  return {.findings = findings, .tables = tables, .figures = figures, .charts = charts};
}

}  // namespace paceline::analysis
