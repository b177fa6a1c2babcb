// SPDX-License-Identifier: Apache-2.0
// What the operating system did with the threads of a Nsight Systems export: calls of its runtime libraries, when each
// thread was on a CPU, and samples of its stack. Calls stand on rows beside the thread's own, because their times come
// from another clock and source than its ranges, and need not nest in them.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "analysis/importers/nsys/import.h"
#include "analysis/importers/scheduling.h"

namespace paceline::analysis {

void NsysImport::read_system_calls() {
  each_call("OSRT_API", [](ProcessTracks& of, std::uint64_t thread, const TimeInterval& time, std::string_view name) {
    TrackBuilder& track = of.extra(TrackKind::copy, fmt::format("thread {}, system calls", thread));
    track.add_slice(time.start_ns, time.end_ns, name, "os", "call");
  });
}

// The export does not say why a thread left its CPU, so it is taken as blocked until it comes back.
void NsysImport::read_scheduling() {
  const char* table = "SCHED_EVENTS";
  std::map<std::int64_t, std::vector<ThreadSwitch>> switches;  // by thread
  Rows row = database_.rows(table, {"start", "isSchedIn", "globalTid"}, "ORDER BY start");
  while (row.next()) {
    const std::int64_t time_ns = row.integer(0);
    if (row.is_null(0) || !is_usable_time(time_ns)) {
      ++unusable_[table];
      continue;
    }
    if (row.is_null(2)) {
      ++without_thread_[table];
      continue;
    }
    const bool runs = row.integer(1) != 0;
    switches[row.integer(2)].push_back({time_ns, runs ? ThreadActivity::running : ThreadActivity::blocked});
  }
  for (const auto& [thread, its] : switches) {
    Process* of = process(nsys_process(thread), false);
    if (of != nullptr) of->tracks.thread(nsys_tid(thread)).add_states(thread_states_of(its, {}));
  }
}

void NsysImport::read_samples() {
  const char* table = "COMPOSITE_EVENTS";
  struct CalledFunction {
    std::int64_t depth = 0, symbol = 0, module = 0;  // the innermost function has depth 0
  };
  std::map<std::int64_t, std::vector<CalledFunction>> chains;  // by sample
  for (Rows row = database_.rows("SAMPLING_CALLCHAINS", {"id", "symbol", "module", "stackDepth"}); row.next();) {
    chains[row.integer(0)].push_back({row.integer(3), row.integer(1), row.integer(2)});
  }
  Rows row = database_.rows(table, {"id", "start", "globalTid"}, "ORDER BY start");
  while (row.next()) {
    const std::int64_t time_ns = row.integer(1), thread = row.integer(2);
    if (row.is_null(1) || !is_usable_time(time_ns)) {
      ++unusable_[table];
      continue;
    }
    if (row.is_null(2)) {
      ++without_thread_[table];
      continue;
    }
    Process* of = process(nsys_process(thread), false);
    if (of == nullptr) continue;
    RankBuilder& rank = of->tracks.rank();
    StackId stack = 0;
    if (const auto chain = chains.find(row.integer(0)); chain != chains.end()) {
      std::ranges::stable_sort(chain->second, std::greater(), &CalledFunction::depth);
      for (const CalledFunction& called : chain->second) {
        const Frame frame{.function = rank.names().intern(capture_.string(called.symbol)),
                          .file = rank.names().intern(capture_.string(called.module))};
        stack = rank.stacks().stack(stack, rank.stacks().frame(frame));
      }
    }
    of->tracks.thread(nsys_tid(thread)).add_stack_sample(time_ns, stack);
  }
}

}  // namespace paceline::analysis
