// What puts a slice into a phase: a table, not code.
//
// The first rule that fits a slice decides. Patterns compare without regard to case; `*` stands for any text, and an
// empty pattern fits everything. A slice whose rule has no phase takes the phase of the slice around it, as a layer
// inside forward does.
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

// The rules applied once to each kind of slice of a trace. Several threads may share a table. Cost: kinds × rules; a
// look-up is one array access.
class PhaseTable {
 public:
  // Not explicit: where only one rank is looked at, a trace does in place of its table.
  PhaseTable(const Trace& trace);

  const Trace& trace() const { return trace_; }
  // The phase of a slice of this kind; nothing where it takes that of the slice around it.
  std::optional<Phase> phase(KindId kind) const { return entries_[kind].phase; }
  bool iteration(KindId kind) const { return entries_[kind].iteration; }
  bool any_iterations() const { return any_iterations_; }  // whether any kind is an iteration

 private:
  struct Entry {
    std::optional<Phase> phase;
    bool iteration = false;
  };
  const Trace& trace_;
  std::vector<Entry> entries_;  // by kind
  bool any_iterations_ = false;
};

}  // namespace paceline::analysis
