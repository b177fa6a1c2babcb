// What puts a slice into a phase: a table, not code.
//
// The first rule that fits a slice decides. Patterns compare without regard to case; `*` stands for any text, and an
// empty pattern fits everything. A rule without a phase says that the slice has none of its own and takes that of the
// slice around it (a layer inside forward).
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/metrics/phases.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

struct PhaseRule {
  std::string_view domain, category, name;
  std::optional<Phase> phase;
};

// Built in: our trainer, MPI, NCCL, PyTorch, Horovod, and the field's common words.
std::span<const PhaseRule> phase_rules();

bool matches(std::string_view pattern, std::string_view text);

// The rules applied to one trace, each pair of class and name once. Look-ups cost two array accesses.
class PhaseTable {
 public:
  explicit PhaseTable(const Trace& trace) : trace_(trace), cells_(trace.classes.size()) {}

  std::optional<Phase> phase(std::uint16_t slice_class, NameId name);
  bool iteration(std::uint16_t slice_class, NameId name);

 private:
  struct Cell {
    std::uint8_t known = 0, phase = 0, iteration = 0;  // phase: 0 = none, else Phase + 1
  };
  const Cell& cell(std::uint16_t slice_class, NameId name);

  const Trace& trace_;
  std::vector<std::vector<Cell>> cells_;  // by class, then by name
};

}  // namespace paceline::analysis
