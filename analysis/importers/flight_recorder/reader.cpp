// SPDX-License-Identifier: Apache-2.0
// The row of PyTorch's Flight Recorder dumps in the table of readers: one file for each rank of a job that hung.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "analysis/clocks/alignment.h"
#include "analysis/importers/flight_recorder/dump.h"
#include "analysis/importers/flight_recorder/verdicts.h"
#include "analysis/importers/kineto/collectives.h"
#include "analysis/importers/reader.h"
#include "analysis/text/lists.h"
#include "profiler/format/error.h"
#include "profiler/format/input_file.h"

namespace paceline::analysis {
namespace flight_recorder_files {

using flight_recorder::Call;
using flight_recorder::Dump;

constexpr std::size_t largest_dump = std::size_t{256} << 20;  // a rank keeps a few thousand calls

std::string text_of(const std::filesystem::path& path, std::size_t most) {
  const format::InputFile file(path);
  std::string text(std::min<std::uint64_t>(file.size(), most), '\0');
  text.resize(file.read(0, text.data(), text.size()));
  return text;
}

bool is_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text[first] == '{';
}

// A pickle of protocol 2 or newer begins with 0x80; older ones begin with a dictionary.
bool recognises(const TraceFile& file) {
  try {
    const std::string text = text_of(file.path, 1 << 20);
    const bool pickle =
        !text.empty() && (text[0] == '\x80' || text[0] == '(' || text.starts_with("}q") || text.starts_with("}p"));
    if (!pickle && !is_json(text)) return false;
    const bool named = text.find("pg_config") != text.npos || text.find("collective_seq_id") != text.npos;
    return named && text.find("entries") != text.npos && text.find("traceEvents") == text.npos;
  } catch (const Error&) {
    return false;
  }
}

// The last number in the file's name: "_dump_12", "nccl_trace_rank_12.json".
int rank_of(const TraceFile& file) {
  const std::string name = std::filesystem::path(file.name).filename().string();
  const std::size_t end = name.find_last_of("0123456789");
  if (end == name.npos) throw Error(fmt::format("{}: its name has no rank: name it dump_RANK", file.name));
  const std::size_t begin = name.find_last_not_of("0123456789", end) + 1;
  int rank = 0;
  if (std::from_chars(name.data() + begin, name.data() + end + 1, rank).ec != std::errc() || rank > 100'000'000) {
    throw Error(fmt::format("{}: its name has no rank: name it dump_RANK", file.name));
  }
  return rank;
}

Dump read_dump(const TraceFile& file) {
  const int rank = rank_of(file);
  const std::string bytes = text_of(file.path, largest_dump);
  flight_recorder::Values values;
  try {
    const auto& value =
        is_json(bytes) ? flight_recorder::decode_json(bytes, values) : flight_recorder::decode_pickle(bytes, values);
    return flight_recorder::dump_of(value, rank);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}: dump the Flight Recorder again", file.name, error.what()));
  }
}

std::uint64_t identity_of(const flight_recorder::Group& group) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  for (const char c : group.name) mix(static_cast<unsigned char>(c));
  for (const int rank : group.ranks) mix(static_cast<std::uint64_t>(rank) + 256);
  return hash;
}

// A dump as a rank: a track for each group. The calls of NCCL have the names of its functions; others have PyTorch's,
// as in a recording.
void build(const Dump& dump, std::int64_t zero_ns, RankBuilder& rank) {
  Names& names = rank.names();
  struct Known {
    TrackBuilder* track = nullptr;
    NameId text = 0;
    std::uint32_t members = 0;
  };
  std::map<std::string, Known> groups;
  for (const auto& [name, group] : dump.groups) {
    Known& known = groups[name];
    known.text = names.intern(group.text());
    known.members = static_cast<std::uint32_t>(group.ranks.size());
    const auto own = std::ranges::find(group.ranks, dump.rank);
    rank.add_communicator({known.text, identity_of(group), known.members},
                          own == group.ranks.end() ? -1 : static_cast<std::int32_t>(own - group.ranks.begin()));
  }
  for (const Call& call : dump.calls) {
    Known& known = groups[call.group];
    const bool nccl = call.library.empty() || call.library == "nccl";
    if (known.track == nullptr) {
      known.track = &rank.add_track(nccl ? TrackKind::nccl : TrackKind::thread,
                                    (nccl ? "NCCL" : call.library) + " " + names[known.text]);
    }
    TrackBuilder& track = *known.track;
    const auto operation = kineto::operation_of(call.function);
    const std::string name = !nccl       ? call.library + ":" + call.function
                             : operation ? "nccl" + operation->name
                                         : call.function;
    const bool timed = call.pends() || call.completed_ns;
    const std::int64_t start_ns = call.started_ns.value_or(call.created_ns) - zero_ns;
    const KindId kind = rank.kind(name, nccl ? "nccl" : "torch",
                                  !timed            ? "enqueue"
                                  : call.is_message ? "point-to-point"
                                                    : "collective");
    const std::uint32_t slice = track.begin_slice(start_ns, kind);
    if (!call.pends()) track.end_slice(slice, call.completed_ns.value_or(start_ns + zero_ns) - zero_ns);
    (nccl ? rank.info().nccl_events : rank.info().nvtx_events) += 1;
    if (call.bytes > 0) track.argument(slice, names.intern("bytes"), call.bytes);
    track.text_argument(slice, names.intern("communicator"), known.text);
    if (known.members > 0) track.argument(slice, names.intern("members"), known.members);
    if (!call.datatype.empty()) track.text_argument(slice, names.intern("datatype"), names.intern(call.datatype));
    if (!call.state.empty()) track.text_argument(slice, names.intern("state"), names.intern(call.state));
    if (!call.frame.empty()) track.text_argument(slice, names.intern("frame"), names.intern(call.frame));
    if (call.is_message && call.peer) track.argument(slice, names.intern("peer"), *call.peer);
    track.varying_argument(slice, names.intern("sequence"), call.number);
  }
}

std::string faults_text(const std::vector<flight_recorder::Fault>& faults) {
  std::vector<int> ranks;
  std::vector<std::string> reasons;
  for (const auto& fault : faults) {
    ranks.push_back(fault.rank);
    reasons.push_back(flight_recorder::fault_text(fault));
  }
  return fmt::format("{} {} at fault: {}", capitalised(rank_list(ranks)), ranks.size() == 1 ? "is" : "are",
                     joined(reasons, "; "));
}

Trace read(std::span<const TraceFile> files, const Progress& progress) {
  ProgressCounter counter(progress, files.size());
  std::vector<Dump> dumps;
  std::vector<std::string> failures, paths;
  std::set<int> seen;
  for (const TraceFile& file : files) {
    try {
      Dump dump = read_dump(file);
      if (!seen.insert(dump.rank).second) {
        throw Error(
            fmt::format("{}: another file has the rank {} as well: leave one of them out", file.name, dump.rank));
      }
      dumps.push_back(std::move(dump));
      paths.push_back(file.name);
    } catch (const Error& error) {
      failures.emplace_back(error.what());
    }
    counter.add(1);
  }
  if (dumps.empty()) throw Error(failures.front());
  // Times are UTC on each host. What pends does so until the last time that any dump has.
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max(), last_ns = 0;
  int world_size = 1;
  for (const Dump& dump : dumps) {
    world_size = std::max(world_size, dump.rank + 1);
    for (const auto& [name, group] : dump.groups) {
      world_size = std::max(world_size, static_cast<int>(group.ranks.size()));
    }
    for (const Call& call : dump.calls) {
      first_ns = std::min({first_ns, call.created_ns, call.started_ns.value_or(call.created_ns)});
      last_ns = std::max({last_ns, call.created_ns, call.started_ns.value_or(0), call.completed_ns.value_or(0)});
    }
  }
  if (last_ns == 0) first_ns = 0;
  add_members(dumps);
  const std::vector<flight_recorder::Fault> faults = find_faults(dumps);
  const std::string verdicts = joined(verdicts_of(dumps, faults));
  TraceBuilder run;
  for (std::size_t d = 0; d < dumps.size(); ++d) {
    Rank info;
    info.rank = dumps[d].rank;
    info.world_size = world_size;
    info.path = paths[d];
    info.format = "flight-recorder";
    info.end_ns = last_ns - first_ns;
    info.utc_of_zero_ns = first_ns;
    info.clock_source = "utc";
    info.clock_error_ns = unset_utc_error_ns;
    info.facts["flight_recorder.version"] = dumps[d].version;
    info.facts["flight_recorder.verdict"] = verdicts;
    if (!dumps[d].nccl_version.empty()) info.facts["nccl.version"] = dumps[d].nccl_version;
    for (const auto& fault : faults) {
      if (fault.rank == info.rank) info.facts["fault"] = fault_text(fault);
    }
    build(dumps[d], first_ns, run.add_rank(std::move(info)));
  }
  Trace trace = run.finish();
  failures.insert(failures.end(), trace.notes.begin(), trace.notes.end());
  trace.notes = std::move(failures);
  if (!faults.empty()) trace.notes.push_back(faults_text(faults));
  return trace;
}

}  // namespace flight_recorder_files

const TraceReader flight_recorder_reader{"flight-recorder", flight_recorder_files::recognises,
                                         flight_recorder_files::read, true};

}  // namespace paceline::analysis
