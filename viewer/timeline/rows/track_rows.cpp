// SPDX-License-Identifier: Apache-2.0
// The kinds of rows that show the slices of a track as they are.
#include "viewer/timeline/rows/slice_row.h"

namespace paceline::viewer {

using analysis::TrackKind;

void add_main_thread_row(Document& document, std::size_t rank, Rows& rows) {
  add_slice_rows(document, rank, TrackKind::thread, true, rows);
}
void add_thread_rows(Document& document, std::size_t rank, Rows& rows) {
  add_slice_rows(document, rank, TrackKind::thread, false, rows);
}
void add_nccl_rows(Document& document, std::size_t rank, Rows& rows) {
  add_slice_rows(document, rank, TrackKind::nccl, false, rows);
}
void add_stream_rows(Document& document, std::size_t rank, Rows& rows) {
  add_slice_rows(document, rank, TrackKind::stream, false, rows);
}
void add_copy_rows(Document& document, std::size_t rank, Rows& rows) {
  add_slice_rows(document, rank, TrackKind::copy, false, rows);
}

// MPI calls are slices of their thread; other tools' traces may have tracks of their own for them.
void add_mpi_rows(Document& document, std::size_t rank, Rows& rows) {
  add_slice_rows(document, rank, TrackKind::mpi, false, rows);
}

}  // namespace paceline::viewer
