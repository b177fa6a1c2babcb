// SPDX-License-Identifier: Apache-2.0
// A table of runs, as CSV: header `ranks,epochs,images,seconds`, optionally `accuracy`, `seconds_to_accuracy` and
// `seconds_sd` (the standard deviation of a row's seconds); `images/s`, `images_per_s` and `throughput` follow from the
// others and are not read. Some of the other columns define a series (scaling.h), the rest are labels.
//
//   ranks,epochs,images,seconds,program
//   1,4,10000,193.17,chainer
//   2,4,10000,114.01,chainer-parallel
//
// Semicolons or tabs may separate the fields instead, lines may end in LF, CR LF or CR, and names of columns may have
// capital letters. Fields may be quoted as in RFC 4180; lines that start with # are comments.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/scaling/scaling.h"

namespace paceline::analysis {

// Tells a table from a trace: true if the first line that is not a comment names one of the four columns. False for a
// file that cannot be read.
bool looks_like_runs_table(const std::filesystem::path& path);

// One run for each row, in the order of the table. Throws Error "FILE:LINE: the fault: the remedy".
std::vector<ScalingRun> read_runs_table(const std::filesystem::path& path);
std::vector<ScalingRun> parse_runs_table(std::string_view text, const std::string& name);

}  // namespace paceline::analysis
