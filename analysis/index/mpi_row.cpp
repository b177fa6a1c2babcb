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
  std::size_t next_argument = 0;
  for (std::uint32_t i = 0; i < from.size(); ++i) {
    if (trace.classes[from.slice_class[i]].domain != mpi) continue;
    while (!open_ends.empty() && open_ends.back() <= from.start_ns[i]) open_ends.pop_back();
    const auto copy = static_cast<std::uint32_t>(to.size());
    to.start_ns.push_back(from.start_ns[i]);
    to.duration_ns.push_back(from.duration_ns[i]);
    to.name.push_back(from.name[i]);
    to.slice_class.push_back(from.slice_class[i]);
    to.depth.push_back(static_cast<std::uint16_t>(open_ends.size()));
    open_ends.push_back(from.end_ns(i));
    row.track.depths = std::max<std::uint16_t>(row.track.depths, static_cast<std::uint16_t>(open_ends.size()));
    row.origin.push_back(i);

    const auto& arguments = thread.slice_arguments;
    while (next_argument < arguments.size() && arguments[next_argument].slice < i) ++next_argument;
    for (; next_argument < arguments.size() && arguments[next_argument].slice == i; ++next_argument) {
      row.track.slice_arguments.push_back(arguments[next_argument]);
      row.track.slice_arguments.back().slice = copy;
    }
  }
  return row;
}

}  // namespace paceline::analysis
