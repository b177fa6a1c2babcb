// SPDX-License-Identifier: Apache-2.0
#include "analysis/communication/hang_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "analysis/text/lists.h"
#include "analysis/trace/stack_frames.h"

namespace paceline::analysis {
namespace last_stacks {

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string place(const Trace& trace, const Frame& frame) {
  std::string text = trace.names[frame.function];
  if (frame.file == 0) return text;
  const std::string& file = trace.names[frame.file];
  text += " (" + (system_call(text).empty() ? base_name(file) : file);
  if (frame.line > 0) text += fmt::format(":{}", frame.line);
  return text + ")";
}

bool is_of_library(const std::string& file) {
  constexpr std::array folders = {"/site-packages/", "/dist-packages/", "/lib/python", "<frozen "};
  return std::ranges::any_of(folders, [&](const char* folder) { return file.find(folder) != std::string::npos; });
}

// "recvfrom (socket) below all_reduce (distributed_c10d.py:2806) below train (ddp.py:7)", "MPI_Recv (libmpi.so.40)
// below main (train)"
std::string text_of(const Trace& trace, StackId stack) {
  std::vector<FrameId> frames = frames_of(trace.stacks, stack);
  std::string text;
  const auto below = [&](const std::string& part) { text += (text.empty() ? "" : " below ") + part; };
  const Frame& innermost = trace.stacks[frames.back()];
  if (const std::string_view call = system_call(trace.names[innermost.function]); !call.empty()) {
    below(innermost.file == 0 ? std::string(call) : fmt::format("{} ({})", call, trace.names[innermost.file]));
    frames.pop_back();
  }
  // Of functions of shared libraries, the one that the program called is named. Below a Python function, which already
  // says what it calls, none is.
  const auto file_at = [&](auto frame) -> const std::string& { return trace.names[trace.stacks[*frame].file]; };
  const auto called = std::find_if(frames.rbegin(), frames.rend(),
                                   [&](const FrameId& frame) { return !is_shared_library(file_at(&frame)); });
  if (called != frames.rend()) {
    const bool is_python = trace.stacks[*called].line > 0;
    frames.erase(called.base() + (is_python || called == frames.rbegin() ? 0 : 1), frames.end());
  }
  if (frames.empty()) return text;
  below(place(trace, trace.stacks[frames.back()]));
  while (!frames.empty() && (is_of_library(file_at(&frames.back())) || is_shared_library(file_at(&frames.back())))) {
    frames.pop_back();
  }
  if (frames.empty()) return text;
  const std::string own = place(trace, trace.stacks[frames.back()]);
  if (!text.ends_with(own)) below(own);
  return text;
}

struct RankStack {
  int rank;
  std::vector<FrameId> frames;
};

// The lines of these ranks, which are in the same functions down to `depth`.
void add_branches(const Trace& trace, const std::vector<RankStack>& stacks, std::size_t depth,
                  std::vector<std::pair<std::string, std::string>>& lines) {
  std::map<FrameId, std::vector<RankStack>> branches;
  for (const RankStack& stack : stacks) {
    if (depth < stack.frames.size()) branches[stack.frames[depth]].push_back(stack);
  }
  std::vector<const std::pair<const FrameId, std::vector<RankStack>>*> order;
  for (const auto& branch : branches) order.push_back(&branch);
  std::ranges::stable_sort(order, {}, [](const auto* branch) { return branch->second.size(); });
  for (const auto* branch : order) {
    std::vector<int> ranks;
    for (const RankStack& stack : branch->second) ranks.push_back(stack.rank);
    lines.emplace_back(rank_list(ranks), std::string(depth, ' ') + place(trace, trace.stacks[branch->first]));
    add_branches(trace, branch->second, depth + 1, lines);
  }
}

}  // namespace last_stacks

std::vector<std::string> stack_tree(const Trace& trace) {
  std::vector<last_stacks::RankStack> stacks;
  std::vector<int> without;
  for (const Rank& rank : trace.ranks) {
    const Track* track = main_track(rank);
    if (track == nullptr || track->stacks.size() == 0) continue;
    stacks.push_back({rank.rank, frames_of(trace.stacks, track->stacks.stack.back())});
    if (stacks.back().frames.empty()) without.push_back(rank.rank);
  }
  std::vector<std::pair<std::string, std::string>> lines;
  last_stacks::add_branches(trace, stacks, 0, lines);
  if (!without.empty()) lines.emplace_back(rank_list(without), "code without known functions");
  std::size_t width = 0;
  for (const auto& line : lines) width = std::max(width, line.first.size());
  std::vector<std::string> texts;
  for (const auto& [ranks, text] : lines) texts.push_back(fmt::format("{:{}}  {}", ranks, width, text));
  return texts;
}

std::string last_stacks_text(const Trace& trace) {
  std::map<std::string, std::vector<int>> ranks_at;
  for (const Rank& rank : trace.ranks) {
    const Track* track = main_track(rank);
    if (track == nullptr || track->stacks.size() == 0 || track->stacks.stack.back() == 0) continue;
    ranks_at[last_stacks::text_of(trace, track->stacks.stack.back())].push_back(rank.rank);
  }
  std::vector<std::pair<std::string, std::vector<int>>> groups(ranks_at.begin(), ranks_at.end());
  std::ranges::stable_sort(groups, {}, [](const auto& group) { return group.second.size(); });
  std::string text;
  for (const auto& [at, ranks] : groups) {
    const std::string who = text.empty() ? capitalised(rank_list(ranks)) : "; " + rank_list(ranks);
    text += fmt::format("{} {} in {}", who, ranks.size() == 1 ? "is" : "are", at);
  }
  return text.empty() ? "" : text + ".";
}

}  // namespace paceline::analysis
