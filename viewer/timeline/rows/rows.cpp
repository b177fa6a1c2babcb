// SPDX-License-Identifier: Apache-2.0
#include "viewer/timeline/rows/rows.h"

namespace paceline::viewer {
namespace row_kinds {

// In the order of the rows: the thread that sets the rank's phases first, then what it waits for, helper threads and
// counters last.
constexpr AddRows* kinds[] = {
    &add_rank_row,  &add_main_thread_row, &add_mpi_rows,     &add_nccl_rows,  &add_stream_rows,
    &add_copy_rows, &add_thread_rows,     &add_counter_rows, &add_state_rows,
};

}  // namespace row_kinds

void add_rows(Document& document, std::size_t rank, Rows& rows) {
  for (AddRows* add : row_kinds::kinds) add(document, rank, rows);
}

}  // namespace paceline::viewer
