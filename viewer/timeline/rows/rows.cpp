// SPDX-License-Identifier: Apache-2.0
#include "viewer/timeline/rows/rows.h"

namespace paceline::viewer {

void add_rows(Document& document, std::size_t rank, Rows& rows) {
  using analysis::TrackKind;
  const auto add_slices = [&](TrackKind kind, bool main) { add_slice_rows(document, rank, kind, main, rows); };
  // The thread that sets the rank's phases first, then what it waits for, helper threads and counters last.
  add_rank_row(document, rank, rows);
  add_slices(TrackKind::thread, true);
  add_slices(TrackKind::mpi, false);  // MPI calls are slices of their thread, but have tracks in other tools' traces
  add_slices(TrackKind::nccl, false);
  add_slices(TrackKind::stream, false);
  add_slices(TrackKind::copy, false);
  add_slices(TrackKind::thread, false);
  add_counter_rows(document, rank, rows);
  add_state_rows(document, rank, rows);
}

}  // namespace paceline::viewer
