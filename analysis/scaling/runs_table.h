// A table of runs, as CSV: header `ranks,epochs,images,seconds`, optionally `accuracy` and `seconds_to_accuracy`;
// `images/s`, `images_per_s` and `throughput` are figures that follow from the others and are not read. Every further
// column is configuration. Fields may be quoted as in RFC 4180; lines that start with # are comments.
//
//   ranks,epochs,images,seconds,program
//   1,4,10000,193.17,chainer
//   2,4,10000,114.01,chainer-parallel
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/scaling/scaling.h"

namespace paceline::analysis {

// True where the file's first line that is not a comment names the column `ranks` among commas: how a table is told
// from a trace. False for what cannot be read.
bool looks_like_runs_table(const std::filesystem::path& path);

// One run per row, in the table's order. Throws Error "FILE:LINE: what is wrong: remedy".
std::vector<ScalingRun> read_runs_table(const std::filesystem::path& path);
std::vector<ScalingRun> parse_runs_table(std::string_view text, const std::string& name);

}  // namespace paceline::analysis
