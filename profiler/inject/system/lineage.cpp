// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/system/lineage.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profiler/format/process.h"
#include "profiler/launch/launcher.h"

namespace paceline::inject {
namespace {

Lineage known;
pid_t first_parent = 0;  // the parent of the nearest process that was started as a program: an ancestor or this one
std::int32_t rank_at_fork = -1;
bool complete = false;

bool same(const ProcessName& a, const ProcessName& b) {
  return a.pid == b.pid && a.start == b.start && a.pid_namespace == b.pid_namespace;
}

void append(const ProcessName& ancestor) {
  if (known.ancestor_count < most_ancestors) known.ancestors[known.ancestor_count++] = ancestor;
}

// Sets the process's id in its own PID namespace, if that is this process's. `depth` is that of this process.
bool name_inside(ProcessName& process, int depth) {
  process.pid = process.shown;
  if (depth == 0) return true;
  char shown[16];
  snprintf(shown, sizeof shown, "%d", static_cast<int>(process.shown));
  int its_depth = 0;
  process.pid = format::pid_inside(shown, its_depth);
  return process.pid > 0 && its_depth == depth;
}

// Adds the ancestors that /proc shows in this process's PID namespace, from `next` on, an id in /proc.
void append_from_proc(pid_t next) {
  // The process that `next` started may be in an outer namespace, if this one was forked into another.
  if (known.ancestor_count > 0 && known.ancestors[known.ancestor_count - 1].pid_namespace != known.self.pid_namespace) {
    return;
  }
  int depth = 0;
  if (format::pid_inside("self", depth) == 0 && !format::proc_shows_own_pids()) return;
  std::uint64_t latest = known.ancestor_count > 0 ? known.ancestors[known.ancestor_count - 1].start : known.self.start;
  format::ProcessStatus status;
  for (; next > 0 && known.ancestor_count < most_ancestors; next = status.parent) {
    // A parent is never younger than its child. A younger process has reused the number.
    if (!format::read_process(next, status) || (latest != 0 && status.start > latest)) break;
    ProcessName ancestor{0, status.start, known.self.pid_namespace, next};
    if (!name_inside(ancestor, depth)) break;
    if (known.ancestor_count > 0 && same(known.ancestors[known.ancestor_count - 1], ancestor)) break;
    append(ancestor);
    latest = ancestor.start;
  }
}

}  // namespace

void start_lineage() {
  known = {};
  format::ProcessStatus status;
  first_parent = format::read_own_process(status) ? status.parent : 0;
  known.self = {getpid(), status.start, format::pid_namespace(), status.pid};
  rank_at_fork = record::launched_rank().rank;
}

void note_fork() {
  ProcessName parent = known.self;
  format::ProcessStatus self, status;
  if (parent.start == 0 && getppid() == parent.pid && format::read_own_process(self) &&
      format::read_process(self.parent, status)) {
    parent.start = status.start;
    parent.shown = self.parent;
  }
  const std::int32_t rank = record::launched_rank().rank;
  // A process that got a rank after it was forked is the first of that rank.
  known.forked = rank == rank_at_fork ? known.forked + 1 : 1;
  rank_at_fork = rank;
  // A chain of forks that is longer than the list loses its oldest ancestors.
  if (known.ancestor_count == most_ancestors) --known.ancestor_count;
  if (known.forked > most_ancestors) known.forked = most_ancestors;
  memmove(known.ancestors + 1, known.ancestors, static_cast<std::size_t>(known.ancestor_count) * sizeof(ProcessName));
  ++known.ancestor_count;
  known.ancestors[0] = parent;
  known.self = {getpid(), 0, format::pid_namespace(), 0};
}

const Lineage& complete_lineage() {
  // A child of a raw clone system call has run no fork handler.
  if (known.self.pid != getpid()) note_fork();
  format::ProcessStatus status;
  if (known.self.start == 0 && format::read_own_process(status)) {
    known.self.start = status.start;
    known.self.shown = status.pid;
  }
  if (record::launched_rank().rank != rank_at_fork) known.forked = 0;
  if (complete) return known;
  complete = true;
  append_from_proc(first_parent);
  return known;
}

bool is_forked_worker() { return known.forked > 0 && getppid() == known.ancestors[0].pid; }

}  // namespace paceline::inject
