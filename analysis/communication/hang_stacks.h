// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a job that hangs are: the last stack of each main thread, merged over the ranks.
#pragma once

#include <string>
#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

// "Rank 3 is in recvfrom (socket) below Images.__getitem__ (data.py:41); ranks 0–2 are in all_reduce (ddp.py:7).": the
// system call, the function that called it, and the innermost one that is no library's; the group with the fewest ranks
// first. "" where no stacks were sampled. Cost: linear in the ranks and the depth of their stacks.
std::string last_stacks_text(const Trace& trace);

// The stacks as a tree, a line for each function: the ranks that are in it, then as many spaces as it is deep, then the
// function with its place. Where ranks part, the branch with the fewest ranks comes first. Ranks whose stack is empty
// are the last line. Nothing where no stacks were sampled. Cost: as above.
std::vector<std::string> stack_tree(const Trace& trace);

}  // namespace paceline::analysis
