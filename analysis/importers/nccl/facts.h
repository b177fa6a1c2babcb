// SPDX-License-Identifier: Apache-2.0
// What NCCL's own outputs say of the ranks of a run. docs/analyse.md lists them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::analysis::nccl {

// A process, or a GPU of one. Its rank is that of the largest communicator, which is the run's.
struct RankFacts {
  int rank = unknown_rank, world_size = 0;
  std::string host = {};
  std::int64_t pid = 0;
  std::map<std::string, std::string> facts = {};  // "nccl.channels": "16"

  // Keeps the rank where no larger communicator gave one before.
  void take_rank(std::int64_t number, std::int64_t size) {
    if (number < 0 || size <= world_size || number >= size || size > 100'000'000) return;
    rank = static_cast<int>(number);
    world_size = static_cast<int>(size);
  }
};

struct Output {
  std::vector<RankFacts> ranks;
  std::vector<std::string> notes;
};

// Each says whether the bytes, of which there may be more, begin such an output, and reads a whole one. What cannot be
// read is left out and noted. They throw Error where nothing can be read. Cost: linear in the text.
bool is_inspector(std::string_view begin);  // lines of JSON by the plugin "Inspector"
Output read_inspector(std::string_view text);
bool is_ras(std::string_view begin);  // ncclras --format json
Output read_ras(std::string_view text);
bool is_debug_log(std::string_view begin);  // NCCL_DEBUG=INFO
Output read_debug_log(std::string_view text);

}  // namespace paceline::analysis::nccl
