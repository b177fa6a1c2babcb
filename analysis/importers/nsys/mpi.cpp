// SPDX-License-Identifier: Apache-2.0
// MPI in a Nsight Systems export: the tables of calls, their communicators and their requests.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/importers/mpi_names.h"
#include "analysis/importers/nsys/import.h"

namespace paceline::analysis {
namespace nsys_mpi {

constexpr std::int64_t mpich_world = 0x4400'0000, mpich_self = 0x4400'0001;

enum Column { start, end, thread, text, communicator, tag, peer, size, root, received, request };

}  // namespace nsys_mpi

// A handle is a number of the process, which does not name the communicator in another process. MPICH's handles of the
// predefined communicators are known. Any other handle gets a text that only this process has, so that its calls are
// not matched with those on another communicator, unless it is the only one: then the order of the calls matches them.
void NsysImport::find_communicators() {
  Rows row = database_.rows("MPI_COLLECTIVES_EVENTS", {"globalTid", "commHandle"});
  while (row.next()) {
    if (row.is_null(1)) continue;
    std::vector<std::int64_t>& handles = communicators_[nsys_process(row.integer(0))];
    const std::int64_t handle = row.integer(1);
    const bool known = handle == nsys_mpi::mpich_world || handle == nsys_mpi::mpich_self;
    constexpr std::size_t enough = 2;
    if (!known && handles.size() < enough && std::ranges::find(handles, handle) == handles.end()) {
      handles.push_back(handle);
    }
  }
}

NameId NsysImport::communicator_text(Process& process, std::int64_t global_process, std::int64_t handle) {
  RankBuilder& rank = process.tracks.rank();
  const auto named = [&](const std::string& text, std::uint32_t members) {
    const NameId id = rank.names().intern(text);
    const auto& known = rank.info().communicators;
    if (std::ranges::find(known, id) == known.end()) rank.add_communicator({id, name_identity(text), members});
    return id;
  };
  if (handle == nsys_mpi::mpich_world) return named("MPI_COMM_WORLD", 0);
  const std::string process_text = fmt::format("{} {}", capture_.host, nsys_pid(global_process));
  if (handle == nsys_mpi::mpich_self) return named("MPI_COMM_SELF of " + process_text, 1);
  const auto handles = communicators_.find(global_process);
  const bool only_one = handles == communicators_.end() || handles->second.size() <= 1;
  if (only_one) return 0;
  return named(fmt::format("communicator {:x} of {}", static_cast<std::uint64_t>(handle), process_text), 0);
}

// The column names are those of all four tables. A call on several requests has a row for each of them.
void NsysImport::read_mpi(const char* table) {
  Rows row = database_.rows(table, {"start", "end", "globalTid", "textId", "commHandle", "tag", "remoteRank", "size",
                                    "rootRank", "recvSize", "requestHandle"});
  const bool posts = std::string_view(table) != "MPI_START_WAIT_EVENTS";
  MpiRow before;
  TrackBuilder* track = nullptr;
  std::uint32_t slice = 0;
  while (row.next()) {
    MpiRow call;
    const bool unfinished = row.is_null(nsys_mpi::end);
    if (!read_times(row, table, call.start_ns, call.end_ns)) continue;
    call.thread = row.integer(nsys_mpi::thread), call.text = row.integer(nsys_mpi::text);
    const std::int64_t global_process = nsys_process(call.thread);
    Process* of = process(global_process, false);
    if (of == nullptr) continue;
    RankBuilder& rank = of->tracks.rank();
    const auto [kind, fresh] = of->mpi.try_emplace(call.text, 0);
    if (fresh) {
      const std::string name(capture_.string(call.text));
      kind->second = rank.kind(name.empty() ? "MPI call" : name, "mpi", mpi_category(name));
    }
    if (track == nullptr || call != before) {
      track = &of->tracks.thread(nsys_tid(call.thread));
      slice = unfinished ? track->begin_slice(call.start_ns, kind->second)
                         : track->add_slice(call.start_ns, call.end_ns, kind->second);
      add_mpi_arguments(*of, *track, slice, row, global_process);
      ++rank.info().mpi_events;
      before = call;
    }
    if (row.is_null(nsys_mpi::request)) continue;
    // A test may find nothing completed, so only waits complete requests.
    const std::string& name = rank.names()[rank.vocabulary().kinds[kind->second].name];
    if (!posts && !name.starts_with("MPI_Wait")) continue;
    requests_[global_process].push_back({call.start_ns, row.integer(nsys_mpi::request), track, slice, posts});
  }
}

void NsysImport::add_mpi_arguments(Process& process, TrackBuilder& track, std::uint32_t slice, const Rows& row,
                                   std::int64_t global_process) {
  Names& names = process.tracks.names();
  const auto number = [&](nsys_mpi::Column column, const char* key) {
    if (!row.is_null(column)) track.argument(slice, names.intern(key), row.integer(column));
  };
  // The bytes of the rank's own part: what it sends, or what it receives where it sends nothing.
  const bool sends = !row.is_null(nsys_mpi::size) && row.integer(nsys_mpi::size) > 0;
  const nsys_mpi::Column bytes = sends || row.is_null(nsys_mpi::received) ? nsys_mpi::size : nsys_mpi::received;
  if (!row.is_null(bytes) && row.integer(bytes) >= 0) {
    track.argument(slice, names.intern("bytes"), static_cast<std::uint64_t>(row.integer(bytes)));
  }
  if (!row.is_null(nsys_mpi::communicator)) {
    const NameId text = communicator_text(process, global_process, row.integer(nsys_mpi::communicator));
    if (text != 0) track.text_argument(slice, names.intern("communicator"), text);
  }
  number(nsys_mpi::peer, "peer");
  number(nsys_mpi::tag, "tag");
  if (!row.is_null(nsys_mpi::root) && row.integer(nsys_mpi::root) >= 0) number(nsys_mpi::root, "root");
}

// MPI gives the handle of a completed request to a later one. A request that is numbered is the latest with its handle.
void NsysImport::number_requests() {
  for (auto& [global_process, requests] : requests_) {
    std::ranges::stable_sort(requests, {}, &Request::time_ns);
    std::unordered_map<std::int64_t, std::uint64_t> numbers;  // by handle
    std::uint64_t last = 0;
    Names& names = processes_[global_process]->tracks.names();
    for (const Request& request : requests) {
      if (request.posted) numbers[request.handle] = ++last;
      const auto number = numbers.find(request.handle);
      if (number == numbers.end()) continue;
      request.track->varying_argument(request.slice, names.intern("request"), number->second);
      if (!request.posted) numbers.erase(number);
    }
  }
  requests_.clear();
}

}  // namespace paceline::analysis
