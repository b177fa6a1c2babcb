// SPDX-License-Identifier: Apache-2.0
// The arguments of slices and marks as SQLite has them.
#pragma once

#include "analysis/query/run_data.h"
#include "analysis/query/table.h"

namespace paceline::analysis {

// Gives an argument's value: integers exactly, those above 2^63 - 1 as text because SQLite has no such integers.
void give_argument(sqlite3_context* context, const Names& names, const Argument& argument);

// The slices or marks that an id belongs to, and the position in them; nullptr where there is no such id.
const Slices* find_event(const RunData& data, std::int64_t id, std::uint32_t& position);

}  // namespace paceline::analysis
