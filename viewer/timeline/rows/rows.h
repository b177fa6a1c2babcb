// SPDX-License-Identifier: Apache-2.0
// The rows of a rank, from top to bottom.
#pragma once

#include <memory>
#include <vector>

#include "viewer/timeline/rows/row.h"

namespace paceline::viewer {

using Rows = std::vector<std::unique_ptr<Row>>;

// Append the rows of one kind that a rank has. Each is defined in its own file, and add_rows() calls it.
void add_rank_row(Document& document, std::size_t rank, Rows& rows);
void add_counter_rows(Document& document, std::size_t rank, Rows& rows);
void add_state_rows(Document& document, std::size_t rank, Rows& rows);
// Appends rows for the tracks of this kind that show something.
void add_slice_rows(Document& document, std::size_t rank, analysis::TrackKind kind, bool main, Rows& rows);

// Why a stream was idle, below its work, if it has at least two pieces of it.
void add_idle_row(Document& document, std::size_t rank, std::size_t stream, Rows& rows);
// The ranges whose work is on this stream, below it.
void add_projected_row(Document& document, std::size_t rank, std::size_t stream, Rows& rows);

// The heading of a host, with the phases of its ranks while they are folded.
std::unique_ptr<Row> make_host_row(Document& document, const RankGroup& group);

// All rows of a rank, whether shown or hidden. Cost: linear in its tracks.
void add_rows(Document& document, std::size_t rank, Rows& rows);

}  // namespace paceline::viewer
