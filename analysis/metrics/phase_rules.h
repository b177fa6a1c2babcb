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

// The rules applied to one trace, once to each kind of slice. A look-up costs one array access.
class PhaseTable {
 public:
  explicit PhaseTable(const Trace& trace) : trace_(trace), cells_(trace.kinds.size()) {}

  std::optional<Phase> phase(KindId kind);
  bool iteration(KindId kind) { return cell(kind).iteration != 0; }

 private:
  struct Cell {
    std::uint8_t known = 0, phase = 0, iteration = 0;  // phase: 0 = none, else Phase + 1
  };
  const Cell& cell(KindId kind) {
    Cell& cell = cells_[kind];
    if (cell.known == 0) cell = look_up(kind);
    return cell;
  }
  Cell look_up(KindId kind) const;

  const Trace& trace_;
  std::vector<Cell> cells_;  // by kind
};

}  // namespace paceline::analysis
