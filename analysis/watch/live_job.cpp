// SPDX-License-Identifier: Apache-2.0
#include "analysis/watch/live_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>

#include "analysis/communication/hangs.h"
#include "analysis/importers/pace/import.h"
#include "analysis/phases/selection.h"
#include "analysis/run/index/run_index.h"
#include "analysis/statistics/statistics.h"
#include "analysis/text/labels.h"
#include "analysis/text/numbers.h"
#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace live_job_parts {

constexpr std::uint64_t patient_polls = 5;  // for ranks that are missing when all others have ended
constexpr std::int64_t realign_ns = 60'000'000'000;
// A running rank without a new event for so long, or in one MPI call for so long, makes no progress.
constexpr double silent_ns = 5e9;

std::int64_t utc_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// The iterations of the window, and what the main thread does.
void look_at(LiveFile& file, const RunIndex& index, std::size_t r) {
  const Rank& rank = index.trace().ranks[r];
  file.iterations = index.times(r).iterations;
  file.waited_ns.assign(file.iterations.size(), 0);
  for (const BlockedTime& interval : index.collectives().blocked[r]) {
    const Iteration* iteration = iteration_at(file.iterations, interval.start_ns);
    if (iteration != nullptr) {
      file.waited_ns[static_cast<std::size_t>(iteration - file.iterations.data())] += interval.wait_ns();
    }
  }
  const auto first_new = std::ranges::find_if(
      file.iterations, [&](const Iteration& iteration) { return file.middle(iteration) > file.over_until; });
  std::int64_t number = file.over - (first_new - file.iterations.begin());
  for (Iteration& iteration : file.iterations) {
    if (iteration.counted) iteration.number = number;
    ++number;
  }
  for (auto iteration = first_new; iteration != file.iterations.end(); ++iteration) {
    const std::int64_t end_ns = iteration->start_ns + iteration->duration_ns;
    if (!iteration->finished && end_ns >= rank.end_ns) break;  // it goes on
    ++file.over;
    file.over_until = file.ticks_at(end_ns);
    if (!iteration->finished) continue;
    ++file.finished;
    file.steps.push_back(iteration->duration_ns);
    if (file.steps.size() > LiveSteps::shown) file.steps.pop_front();
  }

  file.doing.clear();
  file.in_mpi_ns.reset();
  const Track* main = main_track(rank);
  if (main == nullptr) return;
  const NameId unfinished = index.trace().names.find("unfinished"), mpi = index.trace().names.find("mpi");
  const Slices& slices = main->slices;
  for (std::size_t i = slices.size(); i-- > 0;) {
    if (slices.depth[i] == 0 && slices.end_ns(i) < rank.end_ns) break;  // so do all before it
    if (slices.end_ns(i) < rank.end_ns || !slices.number(i, unfinished)) continue;
    if (file.doing.empty()) file.doing = index.trace().name_of(slices, i);
    if (index.trace().kind_of(slices, i).domain == mpi) file.in_mpi_ns = rank.end_ns - slices.start_ns[i];
  }
}

// The collectives that the rank entered, also those before the window.
void note_calls(LiveFile& file, CollectiveCalls calls) {
  for (const CollectiveCall& call : calls.calls) {
    if (call.counted) continue;
    LiveFile::Entered& entered = file.entered[call.communicator];
    if (call.round > 0) {
      std::uint32_t& starts = entered.starts[call.sequence];
      starts = std::max(starts, call.round);
    } else {
      entered.highest = std::max(entered.highest, static_cast<std::int64_t>(call.sequence));
    }
    if (!call.unfinished) file.longest_wait_ns = std::max(file.longest_wait_ns, call.end_ns - call.blocked_from_ns);
  }
  file.calls = std::move(calls);
}

// The window of a rank begins with the last iteration that became a row, because a collective of it may end in the next
// one. Where there is no iteration, only what is open matters.
void drop_what_was_taken(LiveFile& file) {
  const auto first = std::ranges::find_if(
      file.iterations, [&](const Iteration& iteration) { return file.middle(iteration) > file.taken_until; });
  if (file.iterations.empty()) {
    file.rank->drop_before(file.polled_until);
  } else if (first != file.iterations.begin()) {
    file.rank->drop_before(static_cast<std::uint64_t>(std::max(0.0, file.ticks_at(std::prev(first)->start_ns) - 2)));
  }
  file.polled_until = file.rank->last_ticks();
}

// Not blocked in MPI, and not silent for longer than ever before.
bool makes_progress(const LiveFile& file) {
  if (file.in_mpi_ns) return static_cast<double>(*file.in_mpi_ns) < silent_ns;
  const double silence = ns_per_tick(file.growing.facts().header) * static_cast<double>(file.rank->longest_silence());
  return file.newest_ns < std::max(silent_ns, 2 * silence);
}

}  // namespace live_job_parts

void LiveJob::poll() {
  if (files_.poll()) {
    steps_.forget();
    realign_ = true;
    changed_ = polls_;
  }
  if (!files_.ranks().empty()) {
    align();
    import();
    steps_.test_if_due(files_.ranks(), all_ended());
  }
  ++polls_;
}

void LiveJob::align() {
  using namespace live_job_parts;
  const std::vector<LiveFile*>& ranks = files_.ranks();
  std::size_t exchanges = 0;
  for (const LiveFile* file : ranks) exchanges += file->rank->process().definitions.exchanges.size();
  const std::int64_t now = utc_ns();
  if (!realign_ && exchanges == known_exchanges_ && now - aligned_utc_ns_ < realign_ns) return;
  realign_ = false;
  known_exchanges_ = exchanges;
  aligned_utc_ns_ = now;
  std::vector<ClockReadings> readings;
  for (const LiveFile* file : ranks) readings.push_back(readings_of(file->rank->process()));
  std::vector<AlignedClock> clocks = align_clocks(readings);
  const double zero = zero_of(clocks);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    ranks[r]->zero = zero;
    ranks[r]->clock = std::move(clocks[r]);
  }
}

std::map<int, std::uint64_t> LiveJob::recorded_stacks() const {
  const std::vector<LiveFile*>& ranks = files_.ranks();
  std::map<int, std::uint64_t> ticks;
  for (const LiveFile* file : ranks) {
    if (file->state != LiveState::running) continue;
    const auto recorded = file->rank->recorded_stack();
    ticks[file->number] = recorded ? recorded->ticks : 0;
  }
  return ticks;
}

Trace LiveJob::stacks_since(const std::map<int, std::uint64_t>& before) const {
  const std::vector<LiveFile*>& ranks = files_.ranks();
  TraceBuilder run;
  for (const LiveFile* file : ranks) {
    const auto recorded = file->rank->recorded_stack();
    const auto known = before.find(file->number);
    if (!recorded || (known != before.end() && known->second == recorded->ticks)) continue;
    RankBuilder& rank = run.add_rank(file->number, static_cast<int>(ranks.size()));
    StackId stack = 0;
    for (const auto& frame : recorded->frames) {
      stack = rank.stacks().stack(stack, rank.stacks().frame({rank.names().intern(frame.function),
                                                              rank.names().intern(frame.file), frame.line}));
    }
    rank.add_main_thread().add_stack_sample(0, stack);
  }
  return run.finish();
}

void LiveJob::import() {
  using namespace live_job_parts;
  const std::vector<LiveFile*>& ranks = files_.ranks();
  const std::int64_t utc = utc_ns();
  std::vector<const PaceProcess*> processes;
  std::vector<AlignedClock> clocks;
  for (LiveFile* file : ranks) {
    const format::FileHeader& header = file->growing.facts().header;
    const double tick_ns = ns_per_tick(header), now = static_cast<double>(utc - header.start_utc_ns) / tick_ns;
    const auto last = static_cast<double>(file->rank->last_ticks());
    file->newest_ns = std::max(0.0, now - last) * tick_ns;
    const bool runs = file->state == LiveState::running;
    processes.push_back(
        &file->rank->window(file->number, runs ? static_cast<std::uint64_t>(std::max(now, last)) : 0, file->problem));
    clocks.push_back(file->clock);
  }
  const Trace trace = import_running(processes, clocks);
  RunIndex index(trace);
  for (std::size_t r = 0; r < ranks.size(); ++r) look_at(*ranks[r], index, r);
  steps_.take(ranks, index.collectives(), all_ended());
  std::vector<CollectiveCalls> calls = index.take_calls();
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    note_calls(*ranks[r], std::move(calls[r]));
    drop_what_was_taken(*ranks[r]);
  }
}

bool LiveJob::all_ended() const {
  return std::ranges::all_of(files_.ranks(), [](const LiveFile* file) { return file->state != LiveState::running; });
}

// Through the report's own search, from the calls of the windows and what was entered before them.
std::vector<Finding> LiveJob::findings() const {
  using namespace live_job_parts;
  const std::vector<LiveFile*>& ranks = files_.ranks();
  if (ranks.size() < 2) return {};
  std::vector<CollectiveCalls> all;
  for (const LiveFile* file : ranks) {
    CollectiveCalls& own = all.emplace_back(file->calls);
    own.complete = own.complete_at_end && !file->rank->skipped() && file->growing.skipped_events() == 0;
    own.busy = file->state == LiveState::running && makes_progress(*file);
    own.open_slice = label(own.open_slice, 40);
    for (CollectiveCalls::Membership& communicator : own.communicators)
      communicator.text = label(communicator.text, 40);
    for (std::string& operation : own.operations) operation = label(operation, 40);
    const auto add = [&](std::uint64_t communicator, std::uint64_t sequence, std::uint32_t round) {
      CollectiveCall& call = own.calls.emplace_back();
      call.communicator = communicator;
      call.sequence = sequence;
      call.round = round;
      call.operation = static_cast<std::uint32_t>(own.operations.size());
      call.end_ns = file->longest_wait_ns;
    };
    for (const auto& [communicator, entered] : file->entered) {
      for (const auto& [sequence, starts] : entered.starts) add(communicator, sequence, starts);
      if (entered.highest >= 0) add(communicator, static_cast<std::uint64_t>(entered.highest), 0);
    }
    own.operations.emplace_back();  // theirs
  }
  std::vector<Finding> found;
  for (const Hang& hang : find_hangs(all)) {
    found.push_back({.severity = Severity::problem, .text = hang_text(hang), .kind = "hang"});
  }
  for (const LateRank& late : steps_.lateness() ? steps_.lateness()->late : std::vector<LateRank>()) {
    found.push_back(
        {.severity = Severity::warning,
         .text = fmt::format("Rank {} comes {} late, {} of the step.", ranks[late.rank]->number,
                             duration(static_cast<std::int64_t>(late.behind_ns)), percent(late.share_of_step)),
         .kind = "slow rank",
         .places = {{.rank = late.rank}}});
  }
  return found;
}

WatchFrame LiveJob::frame() {
  using namespace live_job_parts;
  const std::vector<LiveFile*>& ranks = files_.ranks();
  WatchFrame frame;
  frame.path = files_.name();
  const std::int64_t utc = utc_ns();
  std::set<std::string> hosts;
  std::int64_t first_utc = utc, last_utc = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const LiveFile& file = *ranks[r];
    const format::TraceFacts& facts = file.growing.facts();
    hosts.insert(facts.host);
    first_utc = std::min(first_utc, facts.header.start_utc_ns);
    const auto age = static_cast<std::int64_t>(file.newest_ns);
    last_utc = std::max(last_utc, file.state == LiveState::running ? utc : utc - age);
    frame.expected_ranks = std::max(frame.expected_ranks, file.world_size());
    WatchedRank& rank = frame.ranks.emplace_back();
    rank.rank = file.number;
    rank.host = facts.host;
    rank.state = file.state;
    rank.iterations = file.finished;
    rank.step_ns = median(std::vector<std::int64_t>(file.steps.begin(), file.steps.end()));
    rank.newest_age_ns = age;
    rank.doing = file.state == LiveState::running ? file.doing : "";
    rank.problem = file.problem;
    rank.nvtx_events = file.growing.events(format::Family::nvtx);
    rank.mpi_events = file.growing.events(format::Family::mpi);
    rank.skipped_events = file.growing.skipped_events();
  }
  frame.hosts = hosts.size();
  frame.elapsed_ns = std::max<std::int64_t>(last_utc - first_utc, 0);
  // A rank that never wrote a file is not waited for without end.
  const bool all_there = static_cast<int>(ranks.size()) >= frame.expected_ranks || polls_ > changed_ + patient_polls;
  frame.ended = !ranks.empty() && all_there && all_ended();
  steps_.describe(frame);
  frame.findings = findings();
  frame.notes = files_.left_out();
  return frame;
}

}  // namespace paceline::analysis
