// SPDX-License-Identifier: Apache-2.0
// Numbers the ranks of a trace that another tool recorded, where its files do not.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

// The number after the word "rank" in the last part of a path: 3 of "run4/Rank-3-of-8.json" and of "rank3".
std::optional<int> rank_in_name(std::string_view path);

// The numbers of files whose names differ in one number only, such as "out.0.nvprof" and "out.1.nvprof". All differ;
// empty where the names do not fit this.
std::vector<int> numbers_that_differ(const std::vector<std::string>& paths);

// Takes out the ranks whose number another one has, and returns them; the first of them by the order in the trace
// stays. Ranks that are unknown_rank get their numbers before, as by number_ranks().
std::vector<Rank> take_duplicate_ranks(Trace& trace);

// Gives each rank that is unknown_rank its number: by the word "rank" in its file's name, else by the only number in
// which the files' names differ, and to ranks of one file in their order. Sorts the ranks. World sizes below the number
// of ranks become that number. Ranks that the run should have but that were not given are noted. Throws Error, naming
// the files and the remedy, where a number stays unknown or two ranks have the same one.
void number_ranks(Trace& trace);

}  // namespace paceline::analysis
