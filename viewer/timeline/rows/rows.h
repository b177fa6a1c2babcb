// SPDX-License-Identifier: Apache-2.0
// The rows of a rank, from top to bottom.
#pragma once

#include <memory>
#include <vector>

#include "viewer/timeline/rows/row.h"

namespace paceline::viewer {

using Rows = std::vector<std::unique_ptr<Row>>;

// Appends the rows of one kind that a rank has.
using AddRows = void(Document& document, std::size_t rank, Rows& rows);

// One for each kind of row, defined in its own file and listed in rows.cpp.
AddRows add_rank_row, add_main_thread_row, add_mpi_rows, add_nccl_rows, add_stream_rows, add_copy_rows, add_thread_rows,
    add_counter_rows, add_state_rows;

// Why a stream was idle, below its work, if it has at least two pieces of it.
void add_idle_row(Document& document, std::size_t rank, std::size_t stream, Rows& rows);
// The ranges whose work is on this stream, below it.
void add_projected_row(Document& document, std::size_t rank, std::size_t stream, Rows& rows);

// The heading of a host, with the phases of its ranks while they are folded.
std::unique_ptr<Row> make_host_row(Document& document, const RankGroup& group);

// All rows of a rank, whether shown or hidden. Cost: linear in its tracks.
void add_rows(Document& document, std::size_t rank, Rows& rows);

}  // namespace paceline::viewer
