#include "profiler/inject/core/lineage.h"

#include <string.h>
#include <unistd.h>

#include "profiler/record/launcher.h"

namespace paceline::inject {
namespace {

Lineage known;
pid_t first_parent = 0;  // the parent of the nearest process that was started as a program: an ancestor or this one
std::int32_t rank_at_fork = -1;
bool complete = false;

bool same(const ProcessName& a, const ProcessName& b) { return a.pid == b.pid && a.start == b.start; }

void append(const ProcessName& ancestor) {
  if (known.ancestor_count < most_ancestors) known.ancestors[known.ancestor_count++] = ancestor;
}

}  // namespace

void start_lineage() {
  known = {};
  known.self.pid = getpid();
  record::ProcessStatus status;
  first_parent = record::read_process(known.self.pid, status) ? status.parent : getppid();
  known.self.start = status.start;
  rank_at_fork = record::launched_rank().rank;
}

void note_fork() {
  ProcessName parent = known.self;
  record::ProcessStatus status;
  if (parent.start == 0 && record::read_process(parent.pid, status)) parent.start = status.start;
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
  known.self = {getpid(), 0};
}

const Lineage& complete_lineage() {
  // A child of a raw clone system call has run no fork handler.
  if (known.self.pid != getpid()) note_fork();
  record::ProcessStatus status;
  if (known.self.start == 0 && record::read_process(known.self.pid, status)) known.self.start = status.start;
  if (record::launched_rank().rank != rank_at_fork) known.forked = 0;
  if (complete) return known;
  complete = true;
  std::uint64_t latest = known.ancestor_count > 0 ? known.ancestors[known.ancestor_count - 1].start : known.self.start;
  for (pid_t next = first_parent; next > 0 && known.ancestor_count < most_ancestors; next = status.parent) {
    // A parent is never younger than its child. A younger process has reused the number.
    if (!record::read_process(next, status) || (latest != 0 && status.start > latest)) break;
    const ProcessName ancestor{next, status.start};
    if (known.ancestor_count > 0 && same(known.ancestors[known.ancestor_count - 1], ancestor)) break;
    append(ancestor);
    latest = ancestor.start;
  }
  return known;
}

bool is_forked_worker() { return known.forked > 0 && getppid() == known.ancestors[0].pid; }

}  // namespace paceline::inject
