#include "analysis/index/mpi_row.h"

#include <algorithm>

namespace paceline::analysis {

MpiRow mpi_row(const Trace& trace, const Track& thread) {
  MpiRow row;
  row.track.kind = TrackKind::mpi;
  row.track.label = "MPI";
  row.track.thread_id = thread.thread_id;
  const NameId mpi = trace.names.find("mpi");
  if (mpi == 0) return row;

  const Slices& from = thread.slices;
  Slices& to = row.track.slices;
  std::vector<std::int64_t> open_ends;
  to.records = from.records;
  for (std::uint32_t i = 0; i < from.size(); ++i) {
    if (trace.kind_of(from, i).domain != mpi) continue;
    while (!open_ends.empty() && open_ends.back() <= from.start_ns[i]) open_ends.pop_back();
    to.start_ns.push_back(from.start_ns[i]);
    to.duration_ns.push_back(from.duration_ns[i]);
    to.kind.push_back(from.kind[i]);
    to.record.push_back(from.record[i]);
    to.depth.push_back(static_cast<std::uint16_t>(open_ends.size()));
    open_ends.push_back(from.end_ns(i));
    row.track.depths = std::max<std::uint16_t>(row.track.depths, static_cast<std::uint16_t>(open_ends.size()));
    row.origin.push_back(i);
  }
  return row;
}

}  // namespace paceline::analysis
