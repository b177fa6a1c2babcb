// SPDX-License-Identifier: Apache-2.0
#include "analysis/phases/phase_rules.h"

#include <algorithm>

#include "profiler/format/iteration_rules.h"

namespace paceline::analysis {
namespace {

constexpr std::nullopt_t none = std::nullopt;

// domain, category, name, phase
constexpr PhaseRule phase_table[] = {
    // Our trainer: the category says it all. Layers and iterations take the phase around them.
    {"paceline.trainer", "layer", "", none},
    {"paceline.trainer", "iteration", "", none},
    {"paceline.trainer", "stage", "", none},
    {"paceline.trainer", "microbatch", "", none},
    {"paceline.trainer", "send", "", Phase::communication},
    {"paceline.trainer", "receive", "", Phase::communication},

    // PyTorch's hooks (`paceline record --pytorch`). A module's name may be any word.
    {"torch", "module", "", none},
    {"torch", "collective", "", Phase::communication},
    {"torch", "point-to-point", "", Phase::communication},
    {"torch", "wait", "", Phase::communication},
    {"torch", "copy", "", Phase::copy},

    // MPI. Making communicators and file access belong to whatever they are done for.
    {"mpi", "", "MPI_Init*", Phase::startup},
    {"mpi", "", "MPI_Finalize", Phase::other},
    {"mpi", "collective", "", Phase::communication},
    {"mpi", "point-to-point", "", Phase::communication},
    {"mpi", "wait", "", Phase::communication},
    {"mpi", "one-sided", "", Phase::communication},
    {"mpi", "", "", none},

    // NCCL's own ranges, and its kernels.
    {"", "", "ncclCommInit*", Phase::startup},
    {"", "", "ncclGetUniqueId*", Phase::startup},
    {"NCCL", "", "", Phase::communication},
    {"", "", "nccl*", Phase::communication},
    {"", "", "*ncclKernel*", Phase::communication},
    {"", "", "*ncclDevKernel*", Phase::communication},

    // CUDA: the calls of a thread, and what ran on streams. A call that waits for a device leaves the thread idle.
    {"cuda", "synchronization", "", Phase::idle},
    {"cuda", "memcpy", "", Phase::copy},
    {"cuda", "memset", "", Phase::copy},
    {"cuda", "", "*Memcpy*", Phase::copy},
    {"cuda", "", "*Memset*", Phase::copy},
    {"cuda", "runtime", "*Launch*", Phase::launch},
    {"cuda", "driver", "*Launch*", Phase::launch},
    {"cuda", "", "", none},

    // Categories, in any domain.
    {"", "startup", "", Phase::startup},
    {"", "preprocess", "", Phase::preprocess},
    {"", "forward", "", Phase::forward},
    {"", "backward", "", Phase::backward},
    {"", "allreduce", "", Phase::communication},
    {"", "communication", "", Phase::communication},
    {"", "optimizer", "", Phase::optimizer},
    {"", "evaluate", "", Phase::evaluate},
    {"", "checkpoint", "", Phase::checkpoint},

    // PyTorch: record_function and emit_nvtx.
    {"", "", "*DataLoader*", Phase::preprocess},
    {"", "", "DistributedDataParallel.forward*", Phase::forward},
    {"", "", "autograd::engine::*", Phase::backward},
    {"", "", "Optimizer.*", Phase::optimizer},
    {"", "", "*.zero_grad*", Phase::optimizer},
    {"", "", "## forward*", Phase::forward},  // TorchRec's pipelines
    {"", "", "## backward*", Phase::backward},
    {"", "", "## optimizer*", Phase::optimizer},
    {"", "", "record_param_comms*", Phase::communication},
    {"", "", "c10d::*", Phase::communication},
    {"", "", "gloo:*", Phase::communication},

    // Horovod.
    {"", "", "HOROVOD_*", Phase::communication},
    {"", "", "horovod*", Phase::communication},

    // The words that people give their ranges.
    {"", "", "startup*", Phase::startup},
    {"", "", "preprocess*", Phase::preprocess},
    {"", "", "data*load*", Phase::preprocess},
    {"", "", "load*batch*", Phase::preprocess},
    {"", "", "forward*", Phase::forward},
    {"", "", "loss", Phase::forward},
    {"", "", "backward*", Phase::backward},
    {"", "", "allreduce*", Phase::communication},
    {"", "", "all_reduce*", Phase::communication},
    {"", "", "communicat*", Phase::communication},
    {"", "", "optimizer*", Phase::optimizer},
    {"", "", "zero_grad*", Phase::optimizer},
    {"", "", "evaluat*", Phase::evaluate},
    {"", "", "eval", Phase::evaluate},
    {"", "", "validat*", Phase::evaluate},
    {"", "", "checkpoint*", Phase::checkpoint},
    {"", "", "save*checkpoint*", Phase::checkpoint},
};

const PhaseRule* first_match(std::string_view domain, std::string_view category, std::string_view name) {
  const auto found = std::ranges::find_if(phase_table, [&](const PhaseRule& rule) {
    return matches(rule.domain, domain) && matches(rule.category, category) && matches(rule.name, name);
  });
  return found == std::end(phase_table) ? nullptr : &*found;
}

bool is_iteration(std::string_view category, std::string_view name, std::string_view iteration_name) {
  if (!iteration_name.empty()) return matches(iteration_name, name);
  return format::is_iteration_category(category) || format::is_iteration_name(name);
}

KindRule rule_of(const Trace& trace, const Kind& kind) {
  return kind_rule(trace.names[kind.domain], trace.names[kind.category], trace.names[kind.name], trace.iteration_name);
}

// The phases of CUDA calls, in which a thread copies to a device, launches work on it or waits for it.
bool is_for_device(Phase phase) { return phase == Phase::copy || phase == Phase::launch || phase == Phase::idle; }
bool computes(Phase phase) {
  return phase == Phase::preprocess || phase == Phase::forward || phase == Phase::backward || phase == Phase::optimizer;
}
// The phases to which the compute inside them belongs.
bool holds_its_compute(Phase phase) {
  return phase == Phase::startup || phase == Phase::evaluate || phase == Phase::checkpoint;
}

}  // namespace

std::span<const PhaseRule> phase_rules() { return phase_table; }

bool matches(std::string_view pattern, std::string_view text) { return format::fits_pattern(pattern, text); }

KindRule kind_rule(std::string_view domain, std::string_view category, std::string_view name,
                   std::string_view iteration_name) {
  const PhaseRule* rule = first_match(domain, category, name);
  return {rule != nullptr ? rule->phase : std::nullopt, is_iteration(category, name, iteration_name)};
}

NestedPhase nested_phase(const NestedPhase* outer, std::optional<Phase> own) {
  NestedPhase inner{own, std::nullopt};
  if (outer != nullptr) {
    inner.holder = outer->holder;
    if (!inner.phase) inner.phase = outer->phase;
    const bool is_held = inner.holder && inner.phase && (computes(*inner.phase) || is_for_device(*inner.phase));
    if (is_held) inner.phase = inner.holder;
    if (inner.phase && is_for_device(*inner.phase) && outer->phase == Phase::communication) {
      inner.phase = Phase::communication;
    }
  }
  if (inner.phase && holds_its_compute(*inner.phase)) inner.holder = inner.phase;
  return inner;
}

PhaseTable::PhaseTable(const Trace& trace) : trace_(trace) {
  entries_.reserve(trace.kinds.size());
  for (const Kind& kind : trace.kinds) {
    entries_.push_back(rule_of(trace, kind));
    any_iterations_ = any_iterations_ || entries_.back().iteration;
  }
}

}  // namespace paceline::analysis
