// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/resume_notes.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "trainer/guard/rank_check.h"

namespace paceline::train {
namespace {

std::optional<double> as_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

bool same(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const std::optional<double> x = as_number(a), y = as_number(b);
  return x && y && *x == *y;  // 0.10 and 0.1
}

}  // namespace

std::vector<std::string> resume_notes(const RunFacts& then, const RunFacts& now, bool schedule_needs_length) {
  std::vector<std::string> notes;
  if (then.settings.empty()) return notes;
  const auto note = [&](const std::string& what, const std::string& here, const std::string& there) {
    notes.push_back(fmt::format("resumed with {} {}, where the checkpoint's run had {}", what, here, there));
  };
  if (then.data_hash != now.data_hash) {
    if (now.data != then.data) {
      note("another data set:", now.data, then.data);
    } else {
      notes.push_back(fmt::format(
          "resumed with another data set: {}, whose pictures differ from those of the checkpoint's run", now.data));
    }
  }
  auto here = settings_by_name(now.settings);
  const auto there = settings_by_name(then.settings);
  for (const auto& [name, value] : there) here.try_emplace(name, "");
  for (const auto& [name, value] : here) {
    const auto found = there.find(name);
    const std::string before = found == there.end() ? "" : found->second;
    if (same(value, before)) continue;
    if (value.empty()) {
      notes.push_back(fmt::format("resumed without {}, which the checkpoint's run had", name));
    } else if (before.empty()) {
      notes.push_back(fmt::format("resumed with {}, which the checkpoint's run did not have", name));
    } else {
      note(name, value, before);
    }
  }
  if (then.ranks != now.ranks) note("ranks:", fmt::format("{}", now.ranks), fmt::format("{}", then.ranks));
  if (schedule_needs_length && then.iterations != now.iterations) {
    note("a schedule for iterations:", fmt::format("{}", now.iterations), fmt::format("{}", then.iterations));
  }
  return notes;
}

}  // namespace paceline::train
