// SPDX-License-Identifier: Apache-2.0
// Notes about the differences between a resumed run and the run that wrote the checkpoint, so that nobody resumes the
// wrong run by mistake.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace paceline::train {

// The facts about a run, beside its model, that its checkpoints keep.
struct RunFacts {
  std::string settings;          // lines of NAME=VALUE
  std::string data;              // title of the data set
  std::uint64_t data_hash = 0;   // equal for equal data
  std::uint64_t iterations = 0;  // of the whole run
  std::uint64_t ranks = 0;
};

// One line for each difference, e.g. "resumed with --lr 0.2, where the checkpoint's run had 0.1". There are none if an
// older version wrote the checkpoint without these facts. schedule_needs_length: whether the rate depends on the length
// of the run.
std::vector<std::string> resume_notes(const RunFacts& then, const RunFacts& now, bool schedule_needs_length);

}  // namespace paceline::train
