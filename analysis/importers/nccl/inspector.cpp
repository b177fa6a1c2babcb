// SPDX-License-Identifier: Apache-2.0
// The plugin Inspector of NCCL (plugins/profiler/inspector) writes a line of JSON for each operation that ended, into a
// file for each process. The lines have no begin, so that they become sums.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/importers/flight_recorder/values.h"
#include "analysis/importers/nccl/facts.h"
#include "analysis/text/numbers.h"
#include "profiler/format/error.h"

namespace paceline::analysis::nccl {
namespace nccl_inspector {

using flight_recorder::Value;

struct Sum {
  std::uint64_t calls = 0, bytes = 0, time_us = 0;
  std::vector<double> bus_gbs;
};

struct Process {
  RankFacts facts;
  std::map<std::string, Sum> operations;             // by name
  std::map<std::string, std::string> communicators;  // by id
};

double real_at(const Value& object, std::string_view key) {
  const Value* value = object.find(key);
  if (value == nullptr) return 0;
  return value->type == Value::Type::real ? value->real : static_cast<double>(value->whole);
}

std::uint64_t count_at(const Value& object, std::string_view key) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(object.whole_at(key).value_or(0), 0));
}

// False where the line is no operation.
bool take(const Value& line, std::map<std::pair<std::string, std::int64_t>, Process>& processes) {
  const Value *header = line.find("header"), *metadata = line.find("metadata"), *operation = line.find("coll_perf");
  const std::string kind = operation != nullptr ? "coll" : "p2p";
  if (operation == nullptr) operation = line.find("p2p_perf");
  if (header == nullptr || metadata == nullptr || operation == nullptr) return false;
  const std::string name(operation->text_at(kind));
  const std::int64_t rank = header->whole_at("rank").value_or(-1), size = header->whole_at("n_ranks").value_or(0);
  if (name.empty() || rank < 0) return false;
  const std::string host(metadata->text_at("hostname"));
  const std::int64_t pid = metadata->whole_at("pid").value_or(0);
  Process& process = processes[{host, pid}];
  process.facts.host = host;
  process.facts.pid = pid;
  process.facts.take_rank(rank, size);
  process.communicators.try_emplace(
      std::string(header->text_at("id")),
      fmt::format("{} of {} ranks on {} nodes", header->text_at("id"), size, header->whole_at("nnodes").value_or(1)));
  Sum& sum = process.operations[name];
  ++sum.calls;
  sum.bytes += count_at(*operation, kind + "_msg_size_bytes");
  sum.time_us += count_at(*operation, kind + "_exec_time_us");
  sum.bus_gbs.push_back(real_at(*operation, kind + "_busbw_gbs"));
  return true;
}

std::string text_of(Sum& sum) {
  const auto middle = sum.bus_gbs.begin() + static_cast<std::ptrdiff_t>(sum.bus_gbs.size() / 2);
  std::ranges::nth_element(sum.bus_gbs, middle);
  return fmt::format("{} calls, {} bytes in {}, median bus bandwidth {:.1f} GB/s", sum.calls, sum.bytes,
                     seconds(static_cast<double>(sum.time_us) * 1e-6), *middle);
}

}  // namespace nccl_inspector

bool is_inspector(std::string_view begin) {
  return begin.starts_with('{') && begin.find("\"inspector_output_format_version\"") != begin.npos;
}

Output read_inspector(std::string_view text) {
  using namespace nccl_inspector;
  std::map<std::pair<std::string, std::int64_t>, Process> processes;
  std::size_t unreadable = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find_first_not_of(" \r\t") == line.npos) continue;
    try {
      flight_recorder::Values values;
      unreadable += !take(flight_recorder::decode_json(line, values), processes);
    } catch (const Error&) {
      ++unreadable;
    }
  }
  if (processes.empty()) throw Error("no line of it is an operation of NCCL: record it again");
  Output output;
  for (auto& [key, process] : processes) {
    for (auto& [name, sum] : process.operations) process.facts.facts["nccl.inspector." + name] = text_of(sum);
    std::string all;
    for (const auto& [id, what] : process.communicators) all += (all.empty() ? "" : "; ") + what;
    process.facts.facts["nccl.inspector.communicators"] = all;
    output.ranks.push_back(std::move(process.facts));
  }
  if (unreadable > 0) output.notes.push_back(fmt::format("{} lines of it could not be read", unreadable));
  return output;
}

}  // namespace paceline::analysis::nccl
