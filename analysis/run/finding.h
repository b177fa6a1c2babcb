// SPDX-License-Identifier: Apache-2.0
// A finding is data: what it is, how bad, what it costs, where it can be seen, and a sentence. The report, `paceline
// watch`, the viewer and JSON show the same findings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/trace/intervals.h"

namespace paceline::analysis {

enum class Severity { info, warning, problem };

constexpr const char* severity_name(Severity severity) {
  switch (severity) {
    case Severity::info:
      return "info";
    case Severity::warning:
      return "warning";
    case Severity::problem:
      return "problem";
  }
  return "";
}

// Where a finding can be seen. What does not apply is absent.
struct FindingPlace {
  std::string name = {};                  // what is there, for a button: "Rank 1 arrived last in 12 of 21 collectives"
  std::optional<std::size_t> rank = {};   // index into the ranks of the run
  std::optional<TimeInterval> time = {};  // since the run's zero
  std::optional<std::int64_t> iteration = {};  // its number
};

struct Finding {
  Severity severity = Severity::info;
  std::string text;                     // whole sentences, figures with units
  std::optional<std::size_t> run = {};  // which one of several it is about
  // What its subject costs a rank: seconds of the wall time, mean over the ranks. Costs of different findings overlap.
  std::optional<double> cost_s = {};
  bool is_change = false;                 // it repeats a row of the table of changes
  std::string_view kind = {};             // "slow rank", "losses", …: of a table that does not change
  std::vector<FindingPlace> places = {};  // the most important one first
};

}  // namespace paceline::analysis
