// SPDX-License-Identifier: Apache-2.0
// RAS, NCCL's view of a running job, as `ncclras --format json` prints it (src/ras/client_support.cc): for each
// communicator the ranks that answered, how many collectives of each kind they began, and the ranks that did not
// answer.
#include <fmt/format.h>

#include <tuple>

#include "analysis/importers/flight_recorder/values.h"
#include "analysis/importers/nccl/facts.h"
#include "analysis/text/lists.h"
#include "profiler/format/error.h"

namespace paceline::analysis::nccl {
namespace nccl_ras {

using flight_recorder::Value;

std::vector<const Value*> list_at(const Value& object, std::string_view key) {
  const Value* list = object.find(key);
  return list == nullptr ? std::vector<const Value*>{} : list->items;
}

// A GPU of a process, which may be a member of several communicators, with another rank in each.
using Processes = std::map<std::tuple<std::string, std::int64_t, std::int64_t>, RankFacts>;

RankFacts& process_of(const Value& rank, std::int64_t size, Processes& processes) {
  const std::int64_t number = rank.whole_at("rank").value_or(-1), pid = rank.whole_at("pid").value_or(-1);
  const std::string host(rank.text_at("host"));
  // RAS does not know every process. Ranks without one are told apart by their numbers.
  RankFacts& facts = processes[{host, pid, pid < 0 ? number : rank.whole_at("cuda_dev").value_or(0)}];
  facts.take_rank(number, size);
  facts.host = host;
  facts.pid = pid;
  return facts;
}

bool is_set(const Value* status, std::string_view key) {
  return status != nullptr && status->whole_at(key).value_or(0) != 0;
}

std::string state_of(const Value* status) {
  if (is_set(status, "abort_flag")) return "aborted";
  if (is_set(status, "async_error")) return fmt::format("error {}", *status->whole_at("async_error"));
  if (is_set(status, "destroy_flag") || is_set(status, "finalize_called")) return "ending";
  return is_set(status, "init_state") ? fmt::format("initialisation ended with {}", *status->whole_at("init_state"))
                                      : "running";
}

// How often each rank began each collective, where they differ: "ranks 0–2 began AllReduce 7 times, rank 3 6 times".
void note_counts(const std::string& communicator, const std::vector<const Value*>& ranks,
                 std::vector<std::string>& notes) {
  std::map<std::string, std::map<std::int64_t, std::vector<int>>> by_operation;
  for (const Value* rank : ranks) {
    const Value* counts = rank->find("collective_counts");
    if (counts == nullptr) continue;
    for (const auto& [name, count] : counts->entries) {
      by_operation[name->text][count->whole].push_back(static_cast<int>(rank->whole_at("rank").value_or(-1)));
    }
  }
  for (const auto& [operation, by_count] : by_operation) {
    if (by_count.size() < 2) continue;
    std::vector<std::string> parts;
    for (const auto& [count, who] : by_count) parts.push_back(fmt::format("{} {} times", rank_list(who), count));
    notes.push_back(fmt::format("RAS: communicator {}: {} was begun by {}", communicator, operation, joined(parts)));
  }
}

void take(const Value& communicator, Processes& processes, std::vector<std::string>& notes) {
  const std::string hash(communicator.text_at("hash"));
  const std::int64_t size = communicator.whole_at("size").value_or(0);
  const std::vector<const Value*> ranks = list_at(communicator, "ranks");
  const auto add = [&](const Value& rank, const std::string& state) -> RankFacts& {
    RankFacts& facts = process_of(rank, size, processes);
    facts.facts["nccl.ras." + hash] = fmt::format("rank {} of {}, {}", rank.whole_at("rank").value_or(-1), size, state);
    return facts;
  };
  for (const Value* rank : ranks) {
    std::string counts;
    if (const Value* all = rank->find("collective_counts")) {
      for (const auto& [name, count] : all->entries) {
        if (count->whole > 0) counts += fmt::format(", {} {}", name->text, count->whole);
      }
    }
    add(*rank, state_of(rank->find("status")) + counts);
  }
  for (const Value* rank : list_at(communicator, "missing_ranks")) {
    const char* const state = is_set(rank->find("status"), "considered_dead") ? "is dead" : "did not answer";
    const RankFacts& facts = add(*rank, state);
    notes.push_back(fmt::format("RAS: rank {} of communicator {} (process {} on {}) {}",
                                rank->whole_at("rank").value_or(-1), hash, facts.pid, facts.host, state));
  }
  note_counts(hash, ranks, notes);
}

}  // namespace nccl_ras

bool is_ras(std::string_view begin) {
  return begin.starts_with('{') && begin.find("\"nccl_version\"") != begin.npos &&
         begin.find("\"communicators_count\"") != begin.npos;
}

Output read_ras(std::string_view text) {
  using namespace nccl_ras;
  flight_recorder::Values values;
  const Value& document = flight_recorder::decode_json(text, values);
  Output output;
  Processes processes;
  for (const Value* communicator : list_at(document, "communicators")) take(*communicator, processes, output.notes);
  for (auto& [key, rank] : processes) {
    if (rank.rank == unknown_rank) continue;
    rank.facts["nccl.version"] = document.text_at("nccl_version");
    output.ranks.push_back(std::move(rank));
  }
  if (output.ranks.empty()) throw Error("it names no ranks: ask ncclras again while the job runs");
  return output;
}

}  // namespace paceline::analysis::nccl
