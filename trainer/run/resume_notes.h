// What is different about a run that goes on from a checkpoint, so that nobody resumes another run by mistake.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace paceline::train {

// What a run is, beside its model: kept in its checkpoints.
struct RunFacts {
  std::string settings;          // lines of NAME=VALUE
  std::string data;              // title of the data set
  std::uint64_t data_hash = 0;   // the same where the data are the same
  std::uint64_t iterations = 0;  // of the whole run
  std::uint64_t ranks = 0;
};

// One line for each difference, e.g. "resumed with --lr 0.2, where the checkpoint's run had 0.1". Without facts of then
// (written by an older version) there are none. schedule_needs_length: the rate depends on the length of the run.
std::vector<std::string> resume_notes(const RunFacts& then, const RunFacts& now, bool schedule_needs_length);

}  // namespace paceline::train
