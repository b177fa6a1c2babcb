// SPDX-License-Identifier: Apache-2.0
// The table that decides which NVTX ranges are iterations (training steps). The recorder uses it while it records, and
// the analysis uses it afterwards.
//
// libc only: the recorder uses it inside the recorded program.
#pragma once

#include <cstddef>
#include <string_view>

namespace paceline::format {

// Comparison ignores case. `*` stands for any text, and an empty pattern fits everything.
constexpr bool fits_pattern(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return true;
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  // Greedy with one step back to the latest star: linear except for pathological patterns.
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && lower(pattern[p]) == lower(text[t])) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// A range is an iteration if its category or its name fits one of these.
inline constexpr std::string_view iteration_categories[] = {"iteration"};
inline constexpr std::string_view iteration_names[] = {"iteration",   "iteration *",    "step",          "step *",
                                                       "train_step*", "training_step*", "ProfilerStep#*"};

constexpr bool is_iteration_category(std::string_view category) {
  for (const std::string_view pattern : iteration_categories) {
    if (fits_pattern(pattern, category)) return true;
  }
  return false;
}

constexpr bool is_iteration_name(std::string_view name) {
  for (const std::string_view pattern : iteration_names) {
    if (fits_pattern(pattern, name)) return true;
  }
  return false;
}

}  // namespace paceline::format
