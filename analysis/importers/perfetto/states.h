// SPDX-License-Identifier: Apache-2.0
// The states of a thread out of the slices that Paceline's export makes of them (trace/state_stretches.h).
#pragma once

#include <string_view>
#include <utility>

#include "analysis/trace/builder.h"
#include "analysis/trace/state_stretches.h"

namespace paceline::analysis::perfetto {

class StateReader {
 public:
  explicit StateReader(bool exact) { states_.exact = exact; }

  void begin(std::int64_t time_ns, std::string_view name) {
    if (states_.empty()) push(time_ns);
    for (const ThreadState state : {ThreadState::running, ThreadState::waiting, ThreadState::blocked}) {
      if (name != thread_state_name(state)) continue;
      // Of shares of the time, a reading has the order waiting, running, blocked.
      if (!states_.exact && pending_ && order(state) <= order(state_)) push(until_ns_);
      state_ = state;
    }
    from_ns_ = time_ns;
  }
  void end(std::int64_t time_ns) {
    if (states_.empty() || time_ns < from_ns_ || from_ns_ < until_ns_) return;
    if (state_ == ThreadState::running) running_ns_ += time_ns - from_ns_;
    if (state_ == ThreadState::waiting) waiting_ns_ += time_ns - from_ns_;
    until_ns_ = time_ns;
    pending_ = true;
    if (states_.exact) push(time_ns);
  }
  ThreadStates finish() {
    if (pending_) push(until_ns_);
    return std::move(states_);
  }

 private:
  static int order(ThreadState state) {
    return state == ThreadState::waiting ? 0 : state == ThreadState::running ? 1 : 2;
  }
  void push(std::int64_t time_ns) {
    pending_ = false;
    until_ns_ = time_ns;
    states_.time_ns.push_back(time_ns);
    states_.running_ns.push_back(running_ns_);
    states_.waiting_ns.push_back(waiting_ns_);
  }

  ThreadStates states_;
  ThreadState state_ = ThreadState::blocked;
  std::int64_t from_ns_ = 0, until_ns_ = 0, running_ns_ = 0, waiting_ns_ = 0;
  bool pending_ = false;  // there are stretches behind the last entry
};

}  // namespace paceline::analysis::perfetto
