// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/pace/gaps.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline::analysis {
namespace {

std::string reasons_text(std::uint64_t reasons) {
  struct Reason {
    std::uint64_t bit;
    const char* text;
  };
  constexpr Reason known[] = {{format::by_program, "switched off by the program"},
                              {format::before_delay, "before the end of --delay"},
                              {format::outside_iterations, "outside --iterations"},
                              {format::outside_capture, "outside --capture-range"},
                              {format::after_duration, "after --duration"},
                              {format::file_is_full, "the file had its largest size (--max-size)"}};
  std::string text;
  for (const Reason& reason : known) {
    if ((reasons & reason.bit) != 0) text += (text.empty() ? "" : ", ") + std::string(reason.text);
  }
  return text.empty() ? "switched off" : text;
}

void add_pauses(const PaceDefinitions& definitions, std::vector<PaceGap>& gaps) {
  std::uint64_t off = 0, reasons = 0;
  const auto close = [&](std::uint64_t on) {
    if (reasons != 0) gaps.push_back({off, on, true, false, reasons_text(reasons)});
  };
  for (const auto& state : definitions.recording) {
    if (state.reasons == 0) {
      close(state.ticks);
      reasons = 0;
    } else {
      if (reasons == 0) off = state.ticks;
      reasons |= state.reasons;
    }
  }
  close(std::max(off, definitions.last_ticks));
}

// A flight recorder dropped everything except the parts that triggers wrote out and the part held at the end.
void add_dropped(const PaceDefinitions& definitions, std::uint64_t kept_from, std::vector<PaceGap>& gaps) {
  std::uint64_t covered = 0;  // up to here
  const auto cover = [&](std::uint64_t from, std::uint64_t to) {
    if (from > covered) gaps.push_back({covered, from, false, true, "dropped by the flight recorder (--ring)"});
    covered = std::max(covered, to);
  };
  for (const auto& trigger : definitions.triggers) cover(trigger.kept_from, trigger.ticks);
  cover(std::min(kept_from, definitions.last_ticks), definitions.last_ticks);
}

}  // namespace

std::vector<PaceGap> gaps_of(const PaceDefinitions& definitions, std::uint64_t kept_from) {
  std::vector<PaceGap> gaps;
  add_pauses(definitions, gaps);
  if (kept_from > 0) add_dropped(definitions, kept_from, gaps);
  join_gaps(gaps);
  return gaps;
}

void join_gaps(std::vector<PaceGap>& gaps) {
  std::ranges::stable_sort(gaps, {}, &PaceGap::off);
  std::vector<PaceGap> disjoint;
  for (PaceGap& gap : gaps) {
    if (disjoint.empty() || gap.off > disjoint.back().on) {
      disjoint.push_back(std::move(gap));
      continue;
    }
    PaceGap& into = disjoint.back();
    into.on = std::max(into.on, gap.on);
    into.paused |= gap.paused;
    into.incomplete |= gap.incomplete;
    if (into.reason != gap.reason) into.reason += ", " + gap.reason;
  }
  gaps = std::move(disjoint);
}

std::string lost_cause_text(std::uint32_t cause) {
  constexpr const char* causes[] = {"no_free_chunk", "too_long", "too_many_names", "disk",
                                    "ring",          "device",   "payload_cut",    "interrupted"};
  if (cause == format::lost_by_damage) return "damage";
  return cause < std::size(causes) ? causes[cause] : "other";
}

std::string trigger_text(const PaceDefinitions::TriggerEvent& trigger) {
  const std::uint64_t number = trigger.number;
  switch (trigger.cause) {
    case format::TriggerCause::signal:
      return fmt::format("signal {}", number);
    case format::TriggerCause::slow_iteration:
      return fmt::format("slow iteration {}", number);
    case format::TriggerCause::hang:
      return fmt::format("hang of {} s", number);
  }
  return fmt::format("cause {}", static_cast<unsigned>(trigger.cause));
}

}  // namespace paceline::analysis
