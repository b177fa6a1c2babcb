// SPDX-License-Identifier: Apache-2.0
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

#include "analysis/phases/phases.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

struct PhaseRule {
  std::string_view domain, category, name;
  std::optional<Phase> phase;
};

// Built in: our trainer, MPI, NCCL, PyTorch, Horovod, and the field's common words.
std::span<const PhaseRule> phase_rules();

bool matches(std::string_view pattern, std::string_view text);

// What the rules make of slices of one kind. A slice without a phase takes that of the slice around it.
// `iteration_name` is as in Trace.
struct KindRule {
  std::optional<Phase> phase;
  bool iteration = false;
};
KindRule kind_rule(std::string_view domain, std::string_view category, std::string_view name,
                   std::string_view iteration_name);

// The phase of an open slice, and the start-up, evaluation or checkpoint that it is, or is part of.
struct NestedPhase {
  std::optional<Phase> phase, holder;
};
// Of a slice to which the rules give the phase `own`, inside another one; `outer` is null for an outermost slice.
NestedPhase nested_phase(const NestedPhase* outer, std::optional<Phase> own);

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
  const Trace& trace_;
  std::vector<KindRule> entries_;  // by kind
  bool any_iterations_ = false;
};

}  // namespace paceline::analysis
