// SPDX-License-Identifier: Apache-2.0
#include "analysis/communication/hang_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "analysis/text/lists.h"
#include "analysis/trace/stack_frames.h"

namespace paceline::analysis {
namespace last_stacks {

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string place(const Trace& trace, const Frame& frame) {
  std::string text = trace.names[frame.function];
  if (frame.file == 0) return text;
  text += " (" + base_name(trace.names[frame.file]);
  if (frame.line > 0) text += fmt::format(":{}", frame.line);
  return text + ")";
}

bool is_of_library(const std::string& file) {
  constexpr std::array folders = {"/site-packages/", "/dist-packages/", "/lib/python", "<frozen "};
  return std::ranges::any_of(folders, [&](const char* folder) { return file.find(folder) != std::string::npos; });
}

// "recvfrom (socket) below all_reduce (distributed_c10d.py:2806) below train (ddp.py:7)"
std::string text_of(const Trace& trace, StackId stack) {
  std::vector<FrameId> frames = frames_of(trace.stacks, stack);
  std::string text;
  const auto below = [&](const std::string& part) { text += (text.empty() ? "" : " below ") + part; };
  const Frame& innermost = trace.stacks[frames.back()];
  if (const std::string_view call = system_call(trace.names[innermost.function]); !call.empty()) {
    below(innermost.file == 0 ? std::string(call) : fmt::format("{} ({})", call, trace.names[innermost.file]));
    frames.pop_back();
  }
  if (frames.empty()) return text;
  below(place(trace, trace.stacks[frames.back()]));
  while (!frames.empty() && is_of_library(trace.names[trace.stacks[frames.back()].file])) frames.pop_back();
  if (frames.empty()) return text;
  const std::string own = place(trace, trace.stacks[frames.back()]);
  if (!text.ends_with(own)) below(own);
  return text;
}

}  // namespace last_stacks

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
