// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/flight_recorder/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "analysis/importers/kineto/collectives.h"
#include "analysis/text/lists.h"
#include "profiler/format/error.h"

namespace paceline::analysis::flight_recorder {
namespace dump_parts {

constexpr std::size_t most_ranks = 1 << 20;
constexpr int largest_rank = 100'000'000;

// "[0, 1, 2]", as text or as a list.
std::vector<int> ranks_of(const Value* value) {
  std::vector<int> ranks;
  const auto add = [&](std::int64_t rank) {
    if (rank >= 0 && rank <= largest_rank && ranks.size() < most_ranks) ranks.push_back(static_cast<int>(rank));
  };
  if (value == nullptr) return ranks;
  for (const Value* item : value->items) {
    if (item->type == Value::Type::whole) add(item->whole);
  }
  for (const char *at = value->text.data(), *end = at + value->text.size(); at < end;) {
    std::int64_t rank = 0;
    const auto [behind, error] = std::from_chars(at, end, rank);
    if (error == std::errc()) add(rank);
    at = behind == at ? at + 1 : behind;
  }
  return ranks;
}

void add_groups(const Value* config, Dump& dump) {
  if (config == nullptr) return;
  for (const auto& [key, value] : config->entries) {
    Group group{.name = std::string(value->text_at("name")), .description = std::string(value->text_at("desc"))};
    if (group.name.empty()) group.name = key->text;
    if (group.name.empty()) continue;  // gloo: of any group
    group.ranks = ranks_of(value->find("ranks"));
    dump.groups.try_emplace(group.name, std::move(group));
  }
}

// The elements of the first array, "[[4096, 1, 5120]]", times the size of one.
std::uint64_t bytes_of(const Value* sizes, const Value* types, std::string& datatype) {
  if (sizes == nullptr || types == nullptr || types->items.empty()) return 0;
  datatype = types->items[0]->text;
  const std::uint64_t each = kineto::element_bytes(datatype);
  constexpr std::uint64_t largest = std::uint64_t{1} << 50;
  std::uint64_t bytes = 0;
  constexpr std::size_t most = 1024;  // arrays of one call, and dimensions of an array
  for (std::size_t i = 0; i < std::min(sizes->items.size(), most); ++i) {
    std::uint64_t product = each;
    const auto& dimensions = sizes->items[i]->items;
    for (std::size_t d = 0; d < std::min(dimensions.size(), most); ++d) {
      const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(dimensions[d]->whole, 0));
      if (size != 0 && product > largest / size) return 0;
      product *= size;
    }
    bytes += product;
  }
  return bytes;
}

// "nccl:send 0->3" and "nccl:recv 0<-3".
std::optional<int> peer_in(std::string_view name) {
  const std::size_t arrow = name.find_first_of("<-");
  const std::size_t digits = arrow == name.npos ? name.npos : name.find_first_of("0123456789", arrow);
  int peer = 0;
  if (digits == name.npos) return std::nullopt;
  if (std::from_chars(name.data() + digits, name.data() + name.size(), peer).ec != std::errc()) return std::nullopt;
  return peer;
}

// A time in ns since 1970 that the model can hold.
std::optional<std::int64_t> time_at(const Value& entry, std::string_view key) {
  constexpr std::int64_t largest_ns = 4'000'000'000'000'000'000;
  const auto time_ns = entry.whole_at(key);
  return time_ns && *time_ns > 0 && *time_ns < largest_ns ? time_ns : std::nullopt;
}

std::string frame_of(const Value* frames) {
  if (frames == nullptr || frames->items.empty()) return "";
  const Value& frame = *frames->items[0];
  if (frame.find("name") == nullptr) return "";
  return fmt::format("{} at {}:{}", frame.text_at("name"), frame.text_at("filename"),
                     frame.whole_at("line").value_or(0));
}

// Of the group: ("0", "default_pg").
std::string description_of(const Value& entry) {
  const Value* group = entry.find("process_group");
  return group == nullptr || group->items.size() < 2 ? "" : std::string(group->items[1]->text);
}

std::optional<Call> call_of(const Value& entry) {
  Call call;
  const Value* group = entry.find("process_group");
  if (group != nullptr && !group->items.empty()) call.group = group->items[0]->text;
  std::string_view name = entry.text_at("profiling_name");
  call.peer = peer_in(name);
  if (const std::size_t colon = name.find(':'); colon != name.npos) {
    call.library = name.substr(0, colon);
    name.remove_prefix(colon + 1);
  }
  call.function = name.substr(0, name.find(' '));
  call.is_message = entry.whole_at("is_p2p").value_or(0) != 0;
  const auto number = entry.whole_at(call.is_message ? "p2p_seq_id" : "collective_seq_id");
  const auto created_ns = time_at(entry, "time_created_ns");
  if (!number || !created_ns || call.function.empty()) return std::nullopt;
  call.number = *number;
  call.created_ns = *created_ns;
  call.state = entry.text_at("state");
  // NCCL also retires what failed or timed out.
  if (call.library == "gloo" && entry.whole_at("retired").value_or(0) != 0) call.state = "retired";
  call.started_ns = time_at(entry, "time_discovered_started_ns");
  call.completed_ns = time_at(entry, "time_discovered_completed_ns");
  std::string other;
  call.bytes = std::max(bytes_of(entry.find("input_sizes"), entry.find("input_dtypes"), call.datatype),
                        bytes_of(entry.find("output_sizes"), entry.find("output_dtypes"), other));
  call.frame = frame_of(entry.find("frames"));
  return call;
}

// The last completed number of each group, which the dump has under an id of this process. The entries name the ids.
void add_status(const Value& status, const std::map<std::int64_t, std::string>& names, Dump& dump) {
  for (const auto& [key, value] : status.entries) {
    std::int64_t id = key->whole;
    if (key->type == Value::Type::text) {
      std::from_chars(key->text.data(), key->text.data() + key->text.size(), id);
    }
    const auto name = names.find(id);
    const auto last = value->whole_at("last_completed_collective");
    if (name != names.end() && last) dump.completed[name->second] = *last;
  }
}

// What one rank has of one group.
struct State {
  std::map<std::int64_t, const Call*> pending;
  std::int64_t completed = -1;  // the last number
};

State state_of(const Dump& dump, const std::string& group, bool has_messages) {
  State state;
  for (const Call& call : dump.calls) {
    if (call.is_message || call.group != group) continue;
    if (call.pends()) {
      state.pending.try_emplace(call.number, &call);
    } else {
      state.completed = std::max(state.completed, call.number);
    }
  }
  // Where a group has messages, the status may be a message's number.
  const auto reported = dump.completed.find(group);
  if (!has_messages && reported != dump.completed.end()) state.completed = std::max(state.completed, reported->second);
  // A group completes in order. A dump with pending calls alone has none of those before.
  if (!state.pending.empty()) state.completed = std::max(state.completed, state.pending.begin()->first - 1);
  return state;
}

}  // namespace dump_parts

std::string Group::text() const {
  if (description.empty() || description == "undefined") return "group " + name;
  return fmt::format("{} (group {})", description, name);
}

Dump dump_of(const Value& value, int rank) {
  using namespace dump_parts;
  const Value* entries = value.find("entries");
  if (entries == nullptr) throw Error("it has no entries");
  Dump dump{.rank = rank, .version = std::string(value.text_at("version"))};
  dump.nccl_version =
      value.text_at("nccl_version").empty() ? value.text_at("comm_lib_version") : value.text_at("nccl_version");
  add_groups(value.find("pg_config"), dump);
  std::map<std::int64_t, std::string> names;
  for (const Value* entry : entries->items) {
    auto call = call_of(*entry);
    if (!call) continue;
    if (const auto id = entry->whole_at("pg_id")) names[*id] = call->group;
    Group& group = dump.groups[call->group];
    group.name = call->group;
    if (group.description.empty()) group.description = description_of(*entry);
    group.has_messages = group.has_messages || call->is_message;
    dump.calls.push_back(std::move(*call));
  }
  if (const Value* status = value.find("pg_status")) add_status(*status, names, dump);
  return dump;
}

void add_members(std::vector<Dump>& dumps) {
  std::map<std::string, std::set<int>> members;
  for (const Dump& dump : dumps) {
    for (const auto& [name, group] : dump.groups) {
      if (!group.ranks.empty()) continue;
      members[name].insert(dump.rank);
      if (group.description != "default_pg") continue;
      for (const Dump& other : dumps) members[name].insert(other.rank);
    }
  }
  for (Dump& dump : dumps) {
    for (auto& [name, group] : dump.groups) {
      if (group.ranks.empty()) group.ranks.assign(members[name].begin(), members[name].end());
    }
  }
}

std::vector<Fault> find_faults(const std::vector<Dump>& dumps) {
  using namespace dump_parts;
  std::map<int, const Dump*> by_rank;
  std::map<std::string, Group> groups;
  for (const Dump& dump : dumps) {
    by_rank[dump.rank] = &dump;
    for (const auto& [name, group] : dump.groups) {
      Group& known = groups.try_emplace(name, group).first->second;
      known.has_messages = known.has_messages || group.has_messages;
    }
  }
  bool waits = false;                                   // a rank does, for others
  std::map<int, std::pair<std::int64_t, Fault>> first;  // by rank, with the time at which the call was created
  for (const auto& [name, group] : groups) {
    std::map<int, State> states;
    std::map<std::int64_t, const Call*> pending;  // by number, one of the ranks' calls
    for (const int rank : group.ranks) {
      const auto dump = by_rank.find(rank);
      if (dump == by_rank.end()) continue;
      State& state = states[rank] = state_of(*dump->second, name, group.has_messages);
      for (const auto& [number, call] : state.pending) {
        const Call*& earliest = pending[number];
        if (earliest == nullptr || call->created_ns < earliest->created_ns) earliest = call;
      }
    }
    for (const auto& [number, call] : pending) {
      std::vector<int> pend, completed, missing;
      for (const auto& [rank, state] : states) {
        (state.completed >= number ? completed : state.pending.contains(number) ? pend : missing).push_back(rank);
      }
      waits = waits || completed.empty() || !missing.empty();
      const auto accuse = [&](int rank, bool entered, const std::vector<int>& others) {
        const auto known = first.find(rank);
        if (known != first.end() && known->second.first <= call->created_ns) return;
        first[rank] = {call->created_ns, {rank, group.text(), call->function, number, entered, others}};
      };
      for (const int rank : missing) accuse(rank, false, pend);
      if (completed.empty()) continue;
      for (const int rank : pend) accuse(rank, true, completed);
    }
  }
  waits = waits || std::ranges::any_of(dumps, [](const Dump& dump) {
            return std::ranges::any_of(dump.calls, [](const Call& call) { return call.is_message && call.pends(); });
          });
  std::vector<Fault> faults;
  if (!waits) return faults;
  for (auto& [rank, found] : first) faults.push_back(std::move(found.second));
  return faults;
}

std::string fault_text(const Fault& fault) {
  const std::string what = fmt::format("{} #{} of {}", fault.function, fault.number, fault.group);
  const bool one = fault.others.size() == 1;
  if (fault.entered) {
    return fmt::format("rank {} still pends in {}, which {} {} completed", fault.rank, what, rank_list(fault.others),
                       one ? "has" : "have");
  }
  return fmt::format("rank {} never entered {}, in which {} {}", fault.rank, what, rank_list(fault.others),
                     one ? "waits" : "wait");
}

}  // namespace paceline::analysis::flight_recorder
