// SPDX-License-Identifier: Apache-2.0
// Puts the ranks of a trace that is built already on one clock, for formats without recorded comparisons of clocks.
//
// By UTC where every rank has it and the collectives do not contradict it. Else by the ends of matched collectives: no
// rank leaves an all-reduce, all-gather, all-to-all, reduce-scatter or barrier before the last one has entered it, and
// all leave it at about the same time. The offset between two ranks is the median of the differences of these ends,
// which ignores single late ends. With enough collectives the drift is the slope of Tukey's resistant line: through
// the medians of the first and the last third (J. W. Tukey, "Exploratory Data Analysis", 1977, chapter 5). Pairs of
// ranks with the most common collectives form a tree, along which the offsets are added. Ranks of one file share its
// clock.
//
// UTC is contradicted if by it ranks would leave collectives before others enter them.
#pragma once

#include <cstdint>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

// How the ranks of a run are put on one clock.
enum class ClockMethod : std::uint8_t {
  automatic,    // the best that the files allow
  recorded,     // by the UTC times in the files alone; without them the times stay as they are in the files
  exchange,     // by the clocks that the recorder compared, which only .pace files have
  collectives,  // by the ends of matched collectives
};

// Shifts all times of the ranks so that they are on the clock of the first one and the earliest is 0. Sets their
// clock_source to "utc", "collectives", "file" or "none", and clock_error_ns to the bound of 95 % of the differences
// between the ends of collectives; without collectives to unset_utc_error_ns (alignment.h), on one host to
// same_clock_error_ns. Notes the method and its error. Does nothing where the reader aligned all ranks, unless the
// method is `collectives`: ranks without common collectives then keep their clocks. Ranks have their numbers and world
// sizes. Throws Error for `exchange` where the reader did not align the ranks. Cost: that of match_collectives(), and
// linear in the slices.
void align_ranks(Trace& trace, ClockMethod method = ClockMethod::automatic);

// Adds to all times of a rank.
void shift_rank(Rank& rank, std::int64_t ns);

}  // namespace paceline::analysis
