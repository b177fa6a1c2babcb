// A sentence of a report, with its severity.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

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

struct Finding {
  Severity severity = Severity::info;
  std::string text;                     // whole sentences, figures with units
  std::optional<std::size_t> run = {};  // which one of several it is about
  // What its subject costs a rank: seconds of the wall time, mean over the ranks. Costs of different findings overlap.
  std::optional<double> cost_s = {};
  bool is_change = false;  // it repeats a row of the table of changes
};

}  // namespace paceline::analysis
