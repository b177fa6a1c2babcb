// SPDX-License-Identifier: Apache-2.0
// The lines that NCCL prints with NCCL_DEBUG=INFO, of one process or of all, among any others:
// "node1:4711:4720 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC". Only what says how the ranks are connected
// is read; versions of NCCL differ in some lines, and what a version does not print is absent.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "analysis/importers/nccl/facts.h"
#include "profiler/format/error.h"

namespace paceline::analysis::nccl {
namespace nccl_debug_log {

constexpr std::string_view mark = "NCCL INFO ";
constexpr std::size_t longest_fact = 400;

struct Process {
  RankFacts facts;
  std::map<std::string, int> transports;  // connections by kind
  std::set<std::string> lines;            // of nccl.rings, each once
};

// The number behind a word: 8 of "nRanks 8".
std::int64_t number_after(std::string_view line, std::string_view word) {
  const std::size_t at = line.find(word);
  std::int64_t number = -1;
  if (at != line.npos) std::from_chars(line.data() + at + word.size(), line.data() + line.size(), number);
  return number;
}

std::string_view behind(std::string_view line, std::string_view word) {
  const std::size_t at = line.find(word);
  return at == line.npos ? std::string_view{} : line.substr(at + word.size());
}

std::string one_space(std::string_view text) {
  std::string all;
  for (const char c : text) {
    if (c != ' ' || (!all.empty() && all.back() != ' ')) all += c;
  }
  return all;
}

void take(std::string_view message, Process& process) {
  auto& facts = process.facts.facts;
  const auto set = [&](const char* key, std::string_view value) {
    if (!value.empty()) facts[key] = value.substr(0, longest_fact);
  };
  if (message.find("comm 0x") != message.npos) {
    const std::int64_t size = std::max(number_after(message, "nRanks "), number_after(message, "nranks "));
    process.facts.take_rank(number_after(message, " rank "), size);
    if (number_after(message, "nNodes ") > 0) set("nccl.nodes", std::to_string(number_after(message, "nNodes ")));
  }
  if (const auto nics = behind(message, " : Using"); message.starts_with("NET/") && !nics.empty()) {
    set("nccl.nics", one_space(nics.substr(0, nics.find(';'))));
  }
  if (message.starts_with("Using network ")) set("nccl.network", behind(message, "Using network "));
  if (message.starts_with("NCCL version ")) set("nccl.version", behind(message, "NCCL version "));
  if (message.find(" coll channels, ") != message.npos) set("nccl.channels", message);
  if (message.starts_with("Trees ")) set("nccl.trees", behind(message, "Trees "));
  if (!message.starts_with("Channel ") && !message.starts_with("Ring ")) return;
  if (const auto transport = behind(message, " via "); !transport.empty()) {
    ++process.transports[std::string(transport.substr(0, transport.find(' ')))];
  } else if (message.find(" : ") != message.npos) {  // "Channel 00/16 :  0  1  2  3", "Ring 00 : 3 -> 0 -> 1"
    process.lines.insert(one_space(message));
  }
}

// What stands for a process, and a GPU where it has several: "node1:4711 [0]". "" where the line is another one.
std::string source_of(std::string_view before, RankFacts& facts) {
  while (before.ends_with(' ')) before.remove_suffix(1);
  std::string_view device;
  if (before.ends_with(']')) {
    device = before.substr(before.find_last_of(' ') + 1);
    before.remove_suffix(std::min(before.size(), device.size() + 1));
  }
  const std::string_view task = before.substr(before.find_last_of(" \t>") + 1);
  const std::size_t first = task.find(':'), second = task.find(':', first + 1);
  if (first == task.npos || second == task.npos) return "";
  facts.host = task.substr(0, first);
  facts.pid = number_after(task, ":");
  return facts.pid < 0 ? "" : fmt::format("{} {}", task.substr(0, second), device);
}

}  // namespace nccl_debug_log

bool is_debug_log(std::string_view begin) {
  return begin.find(" NCCL INFO ") != begin.npos && begin.find('\0') == begin.npos && !begin.starts_with('{');
}

Output read_debug_log(std::string_view text) {
  using namespace nccl_debug_log;
  std::map<std::string, Process> processes;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    const std::size_t at = line.find(mark);
    if (at == line.npos) continue;
    RankFacts who;
    const std::string source = source_of(line.substr(0, at), who);
    if (source.empty()) continue;
    Process& process = processes[source];
    process.facts.host = who.host;
    process.facts.pid = who.pid;
    take(line.substr(at + mark.size()), process);
  }
  Output output;
  for (auto& [source, process] : processes) {
    auto& facts = process.facts.facts;
    const auto add = [&](const char* key, const std::string& more) {
      std::string& all = facts[key];
      if (all.size() < longest_fact) all += (all.empty() ? "" : "; ") + more;
    };
    for (const auto& [kind, count] : process.transports) add("nccl.transports", fmt::format("{} {}", count, kind));
    for (const std::string& line : process.lines) add("nccl.rings", line);
    if (!facts.empty() && process.facts.rank != unknown_rank) output.ranks.push_back(std::move(process.facts));
  }
  if (output.ranks.empty()) throw Error("no line of it names a rank of NCCL: record it with NCCL_DEBUG=INFO");
  return output;
}

}  // namespace paceline::analysis::nccl
