// SPDX-License-Identifier: Apache-2.0
// What one rank of a running job did, event by event: its iterations with their phases, its collective calls, and what
// it does now. Only summaries are kept, never the events.
//
// All times are ticks since the file's start_ticks; LiveJob puts the ranks on one clock. The figures follow the same
// rules as those of the report (phase_rules.h, iterations.h, collective_calls.h), with these limits: CUDA and NCCL
// events are not read, so a phase is what the main thread's own ranges and MPI calls show.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/clocks/alignment.h"
#include "analysis/phases/phase_rules.h"
#include "analysis/watch/growing_file.h"
#include "profiler/format/events.h"

namespace paceline::analysis {

struct LiveIteration {
  std::int64_t number = 0;  // as Iteration::number
  std::uint64_t start = 0, end = 0;
  std::array<std::uint64_t, phase_count> phase{};  // ticks; adds up to end - start
  // Begin and end of the times in which the main thread works (works() in overlap.h), in order.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> working;
};

struct LiveCall {
  std::uint64_t communicator = 0;  // its identity
  std::uint32_t sequence = 0, members = 0;
  std::uint32_t round = 0;     // of a persistent collective: which of its starts, from 1
  std::uint16_t function = 0;  // of mpi_functions.h; of a persistent collective that of its initialisation
  std::uint32_t range = 0;     // of a script's collective: the file's number of its name; else 0
  bool timed = true;           // as in CollectiveCall
  std::uint64_t start = 0, end = 0, blocked_from = 0, polled_from = 0;
  std::uint64_t polled = 0;                       // of one that is open: the latest test; 0 = the rank is in a call
  bool on_main = false;                           // the main thread was blocked in it, else another one
  std::optional<std::int64_t> iteration;          // the number of the one that it began in
  std::optional<std::int64_t> blocked_iteration;  // of the one in which the rank was blocked
};

class LiveRank {
 public:
  explicit LiveRank(std::uint64_t process_id) : process_id_(process_id) {}

  // Takes the events of one poll. Cost: linear in them.
  void add(std::span<const NewEvents> events, std::uint64_t start_ticks);

  // What ended since the last call of take…, in the order of the ends.
  std::vector<LiveIteration> take_iterations() { return std::exchange(ended_iterations_, {}); }
  std::vector<LiveCall> take_calls() { return std::exchange(ended_calls_, {}); }

  std::uint64_t iterations() const { return iteration_count_; }
  std::uint64_t last_ticks() const { return last_ticks_; }  // of the newest range, mark or MPI call
  bool process_ended() const { return process_ended_; }     // its last event was written
  bool paused() const { return paused_; }                   // the recording is off
  // The collectives that the rank is blocked in now, also in the wait for one or because it polls one.
  const std::vector<LiveCall>& open_calls() const { return open_collectives_; }
  // A send or receive that the rank is blocked in now.
  struct OpenMessage {
    std::uint32_t communicator = 0;  // the file's number
    std::uint16_t function = 0;
    std::int32_t peer = -1, tag = -1;
    std::uint64_t since = 0;
  };
  const std::vector<OpenMessage>& open_messages() const { return open_messages_; }
  // The start of the MPI call that the main thread is in now; nothing if it is in none.
  std::optional<std::uint64_t> in_mpi_since() const;
  std::uint64_t longest_silence() const { return longest_silence_; }  // ticks between two events, once they were there
  const std::string& name(std::uint32_t id) const;                    // the text of the file's number; hostile
  // What the main thread does now: the innermost range or MPI call, or "". The text is as hostile as the program.
  std::string doing() const;
  std::string open_range() const;  // the innermost open range that is no MPI call, or ""

  struct Membership {
    std::uint64_t identity = 0;
    std::string name;
    std::uint32_t members = 0;
    int own_rank = -1;  // -1 = not known
  };
  // The main thread's stack that was recorded last because of a hang or a request; frames from the outermost one on.
  struct RecordedStack {
    struct Frame {
      std::string function, file;  // hostile
      std::uint32_t line = 0;      // 0 = not known
    };
    std::uint64_t ticks = 0;
    std::vector<Frame> frames;  // empty where the thread ran code without known functions
  };
  // Nothing where none was recorded.
  std::optional<RecordedStack> recorded_stack() const;

  // By the file's number; those of scripts after all others.
  const std::map<std::uint64_t, Membership>& communicators() const { return communicators_; }
  // "rank", "world_size", "counter_error_ns" and "iteration_name", where the recorder learned them.
  const std::map<std::string, std::string>& settings() const { return settings_; }
  const std::vector<ClockPairReading>& clock_pairs() const { return pairs_; }
  const std::vector<ClockExchangeReading>& clock_exchanges() const { return exchanges_; }

 private:
  // An open range or MPI call of a track.
  struct Open {
    enum class Type : std::uint8_t { push, start, mpi } type = Type::push;
    std::uint64_t id = 0;  // the domain, the range's id, or the function
    std::uint64_t scope = 0;
    std::uint64_t since = 0;
    NestedPhase phase;
    bool iteration = false;
    // Of a range by start and end: the time in which nothing was open inside it. Only its end tells whether it nests,
    // and what does not nest has no phase of the main thread (PaceNvtx::place_ranges).
    std::uint64_t own = 0;
    bool crosses = false;
    std::optional<LiveCall> call;  // a collective that blocks
    std::optional<OpenMessage> message;
  };
  struct Thread {
    std::vector<Open> open;
    std::vector<LiveCall> posted;  // what the open MPI call posted or completes
    std::vector<std::uint64_t> completed;
    std::optional<std::uint64_t> polling_since;  // the first test after the last other MPI call
    std::uint64_t polled = 0;                    // the latest one
    std::vector<std::uint64_t> payload;          // of the next range, where a script may have made it
    std::optional<std::uint64_t>
        polls_from;  // the first of the MPI_Test… that it made since its last other call or range
  };

  void define(const NewEvents& events, std::uint64_t start_ticks);
  void follow(const NewEvents& events);
  // The innermost open range or call of the thread that is known to nest, or null.
  static const Open* nested(const Thread& thread);
  static Phase phase_of(const Open* open);
  void begin(Thread& thread, bool main, std::uint64_t ticks, Open open, std::optional<std::int64_t> number);
  void end(Thread& thread, bool main, std::uint64_t ticks, std::size_t at);
  void begin_collective(Thread& thread, bool main, const format::Slot& head);
  // A collective that a script's package recorded. The script waits for its request, or inside it where that is 0.
  struct ScriptCollective {
    LiveCall call;
    std::uint64_t request = 0;
    std::optional<std::uint64_t> awaited = {};  // since when
  };
  std::optional<ScriptCollective> script_collective(Thread& thread, std::uint64_t scope, std::uint64_t ticks);
  void start_script_request(Thread& thread, std::uint64_t scope, std::uint64_t range, std::uint64_t ticks);
  void await_script_requests(Thread& thread, std::uint64_t scope, std::uint64_t ticks);
  void end_script_request(std::uint64_t range, std::uint64_t ticks);
  bool in_category(std::uint64_t scope, std::string_view domain, std::string_view category) const;
  void end_call(Thread& thread, bool main, std::uint64_t ticks);
  void finish(LiveCall call, std::uint64_t end, bool main);
  static void note_polling(Thread& thread, std::uint16_t function, std::uint64_t ticks);
  void give_time(std::uint64_t ticks);
  void give_own_time(const Thread& thread, std::size_t at);
  bool is_main(const NewEvents& events);
  const KindRule& rule(std::uint64_t scope);
  const KindRule& mpi_rule(std::uint32_t function);
  std::optional<std::int64_t> iteration_at(std::uint64_t ticks) const;
  std::string name_of(const Open& open) const;
  void refresh_open_calls();

  std::uint64_t process_id_;
  std::unordered_map<std::uint32_t, std::string> names_;
  std::unordered_map<std::uint16_t, std::uint32_t> domains_;
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::uint32_t> categories_;
  std::map<std::uint64_t, Membership> communicators_;
  std::map<std::string, std::string> settings_;
  std::unordered_map<std::uint32_t, format::events::Stack> stacks_;
  std::optional<std::pair<std::uint64_t, std::uint32_t>> recorded_stack_;  // ticks and stack
  std::vector<ClockPairReading> pairs_;
  std::vector<ClockExchangeReading> exchanges_;
  std::unordered_map<std::uint64_t, KindRule> rules_;      // by scope
  std::unordered_map<std::uint32_t, KindRule> mpi_rules_;  // by function

  std::map<std::uint32_t, Thread> threads_;  // by track
  std::optional<std::uint32_t> main_;        // its track
  bool main_is_certain_ = false;
  std::uint64_t given_ = 0;  // the time up to which the main thread's time has a phase
  bool seen_iteration_ = false;
  std::optional<LiveIteration> current_;
  struct Recent {
    std::int64_t number = 0;
    std::uint64_t start = 0, end = 0;
  };
  std::deque<Recent> recent_;  // ended iterations, to find those of calls on other threads
  std::uint64_t iteration_count_ = 0;
  std::vector<LiveIteration> ended_iterations_;
  std::vector<LiveCall> ended_calls_, open_collectives_;
  std::vector<OpenMessage> open_messages_;
  std::unordered_map<std::uint64_t, LiveCall> requests_;                 // calls that do not block, by their request
  std::unordered_map<std::uint64_t, ScriptCollective> script_requests_;  // that have not ended, by their range
  std::unordered_map<std::uint64_t, std::uint64_t> script_ranges_;       // of those, by their request
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::pair<std::uint16_t, std::uint32_t>>
      persistent_;  // function and starts, by communicator and sequence
  std::uint64_t last_ticks_ = 0, longest_silence_ = 0;
  bool process_ended_ = false, paused_ = false;
};

}  // namespace paceline::analysis
