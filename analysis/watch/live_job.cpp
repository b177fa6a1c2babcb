// SPDX-License-Identifier: Apache-2.0
#include "analysis/watch/live_job.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>

#include "analysis/communication/accusations.h"
#include "analysis/communication/hangs.h"
#include "analysis/importers/pace/clock.h"
#include "analysis/statistics/statistics.h"
#include "analysis/text/labels.h"
#include "analysis/text/numbers.h"
#include "analysis/trace/builder.h"
#include "profiler/format/error.h"
#include "profiler/format/liveness.h"
#include "profiler/format/mpi_functions.h"
#include "profiler/format/reader.h"

namespace paceline::analysis {
namespace live_job_parts {

namespace fs = std::filesystem;

constexpr std::size_t kept_rows = 512;        // iterations that the test of lateness looks at
constexpr std::size_t most_open_rows = 4096;  // some ranks may have ended, so that no other rank follows
constexpr std::size_t meeting_bytes = 64U << 20;
constexpr std::uint64_t meeting_polls = 64;  // after which a collective that nobody joins is forgotten
constexpr std::uint64_t patient_polls = 5;   // for ranks that are missing when all others have ended
constexpr double test_share = 0.004;         // of a core, for the test of lateness
constexpr std::int64_t realign_ns = 60'000'000'000;
// A running rank without a new event for so long, or in one MPI call for so long, makes no progress.
constexpr double silent_ns = 5e9;

std::int64_t utc_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

double clock_s(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double ns_per_tick(const format::FileHeader& header) {
  if (header.clock_source == format::ClockSource::monotonic_raw) return 1;
  const bool plausible = header.ticks_per_second > 1e3 && header.ticks_per_second < 1e12;
  return plausible ? 1e9 / header.ticks_per_second : 1;
}

int number_in(const std::map<std::string, std::string>& settings, const char* key, int from_header) {
  if (from_header >= 0) return from_header;
  int value = -1;
  if (const auto found = settings.find(key); found != settings.end()) {
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  }
  return value;
}

std::string operation_of(std::uint16_t function) {
  const format::MpiFunction* known = format::find_mpi_function(function);
  return known != nullptr ? std::string(known->name) : fmt::format("MPI function {}", function);
}

// A file that the recorder has closed is not gone: it ended.
bool is_gone(const format::TraceFacts& facts) {
  return facts.header.closed == 0 && format::liveness_of(facts) == format::Liveness::ended;
}

}  // namespace live_job_parts

std::uint64_t LiveJob::bytes_read() const {
  std::uint64_t bytes = 0;
  for (const auto& [path, file] : files_) bytes += file->growing.bytes_read();
  return bytes;
}

void LiveJob::find_files() {
  for (const std::filesystem::path& directory : run_.paths) find_files_in(directory);
}

void LiveJob::find_files_in(const std::filesystem::path& directory) {
  using namespace live_job_parts;
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (!fs::exists(status)) return;
  std::vector<fs::path> found;
  if (fs::is_regular_file(status)) {
    found.push_back(directory);
  } else if (fs::is_directory(status)) {
    fs::directory_iterator entries(directory, error);
    for (; !error && entries != fs::directory_iterator(); entries.increment(error)) found.push_back(entries->path());
  }
  if (error || (!fs::is_directory(status) && found.empty())) {
    throw Error(fmt::format("{}: {}; give the directory of a run", directory.string(),
                            error ? error.message() : "neither a directory nor a file"));
  }
  for (const fs::path& path : found) {
    const std::string name = path.string();
    if (files_.contains(name)) continue;
    // The recorder gives a file its header before its name, and a trace of another tool is no job that runs.
    if (!format::is_trace_file(path)) continue;
    files_[name] = std::make_unique<File>(path);
  }
}

void LiveJob::read(File& file) {
  using namespace live_job_parts;
  if (file.state == LiveState::ended || file.state == LiveState::killed || file.state == LiveState::lost) return;
  const auto take = [&] {
    const std::vector<NewEvents> news = file.growing.poll();
    const format::FileHeader& header = file.growing.facts().header;
    if (file.rank == nullptr) file.rank = std::make_unique<LiveRank>(header.pid);
    file.rank->add(news, header.start_ticks);
  };
  try {
    // The header names the process.
    if (file.rank == nullptr) take();
    // A process that is gone before the file is read has written all that it ever will.
    const bool gone = is_gone(file.growing.facts());
    take();
    const format::FileHeader& header = file.growing.facts().header;
    file.failures = 0;
    file.problem = file.growing.damage();
    if (header.closed != 0) {
      file.state = LiveState::ended;
    } else if (gone) {
      file.state = LiveState::killed;
    }
  } catch (const Error& error) {
    file.problem = error.what();
    // Once may be the moment in which the recorder replaces the file by the closed one.
    if (file.rank != nullptr && ++file.failures > 1) file.state = LiveState::lost;
  }
}

// One file for each rank: of several, the one that began last. Child processes are left out.
void LiveJob::choose_ranks() {
  using namespace live_job_parts;
  std::vector<File*> candidates;
  std::int64_t newest_start = 0;
  std::string launch;
  left_out_.clear();
  for (const auto& [path, file] : files_) {
    if (file->rank == nullptr) {
      left_out_[path] = file->problem;
      continue;
    }
    candidates.push_back(file.get());
    const format::TraceFacts& facts = file->growing.facts();
    if (facts.header.start_utc_ns >= newest_start && facts.parent.empty()) {
      newest_start = facts.header.start_utc_ns;
      job_ = facts.job;
      if (!facts.launch.empty()) launch = facts.launch;
    }
  }
  std::map<int, File*> chosen;
  std::vector<File*> unnumbered;
  std::size_t other_jobs = 0;
  const auto number_of = [](const File& file) {
    return number_in(file.rank->settings(), "rank", file.growing.facts().header.rank);
  };
  // Of several mpirun of one job, one after the other, the last one is shown.
  std::map<std::string, std::set<int>> launches;  // the ranks of each
  for (const File* file : candidates) launches[file->growing.facts().launch].insert(number_of(*file));
  const std::set<int>& newest = launches[launch];
  for (File* file : candidates) {
    const format::TraceFacts& facts = file->growing.facts();
    const bool is_earlier = !launch.empty() && !facts.launch.empty() && facts.launch != launch &&
                            file->state != LiveState::running &&
                            std::ranges::any_of(launches[facts.launch], [&](int r) { return newest.contains(r); });
    if (facts.job != job_ || is_earlier) {
      ++other_jobs;
      continue;
    }
    const int number = number_of(*file);
    if (!facts.parent.empty() && number < 0) continue;  // a child without a rank of its own
    if (number < 0) {
      unnumbered.push_back(file);
      continue;
    }
    File*& of_rank = chosen[number];
    const auto order = [](const File* f) {
      return std::pair(f->growing.facts().parent.empty(), f->growing.facts().header.start_utc_ns);
    };
    if (of_rank == nullptr || order(of_rank) < order(file)) of_rank = file;
  }
  if (other_jobs > 0) {
    left_out_[run_.name()] = fmt::format("{} of an earlier job left out; record each run into a directory of its own",
                                         plural(other_jobs, "file", "files"));
  }
  std::ranges::stable_sort(unnumbered, {}, [](const File* f) { return f->growing.facts().header.start_utc_ns; });
  int next = 0;
  for (File* file : unnumbered) {
    while (chosen.contains(next)) ++next;
    chosen[next] = file;
  }
  std::vector<File*> ranks;
  for (const auto& [number, file] : chosen) {
    file->number = number;
    ranks.push_back(file);
  }
  if (ranks == ranks_) return;
  ranks_ = std::move(ranks);
  forget_figures();
  realign_ = true;
  changed_ = polls_;
}

// Figures of all ranks together begin anew where another rank appears.
void LiveJob::forget_figures() {
  open_rows_.clear();
  rows_.clear();
  meetings_.clear();
  finished_rows_ = tested_rows_ = next_look_ = 0;
  blocked_before_.clear();
  lateness_.reset();
  steps_.assign(ranks_.size(), {});
}

void LiveJob::align() {
  using namespace live_job_parts;
  std::size_t exchanges = 0;
  for (const File* file : ranks_) exchanges += file->rank->clock_exchanges().size();
  const std::int64_t now = utc_ns();
  if (!realign_ && exchanges == known_exchanges_ && now - aligned_utc_ns_ < realign_ns) return;
  realign_ = false;
  known_exchanges_ = exchanges;
  aligned_utc_ns_ = now;
  std::vector<ClockReadings> readings;
  for (const File* file : ranks_) {
    const format::TraceFacts& facts = file->growing.facts();
    const format::FileHeader& header = facts.header;
    ClockReadings& own = readings.emplace_back();
    own.rank = file->number;
    own.ticks_are_ns = header.clock_source == format::ClockSource::monotonic_raw;
    own.domain = fmt::format("{}\n{}\n{}", facts.boot_id, facts.host, own.ticks_are_ns);
    own.ticks_per_second = header.ticks_per_second;
    own.start_ticks = header.start_ticks;
    own.end_ticks = header.start_ticks + file->rank->last_ticks();
    own.start_utc_ns = header.start_utc_ns;
    own.utc_error_us = facts.utc_error_us;
    own.pairs = file->rank->clock_pairs();
    own.exchanges = file->rank->clock_exchanges();
    const auto measured = file->rank->settings().find("counter_error_ns");
    if (measured != file->rank->settings().end()) {
      const std::string& text = measured->second;
      double ns = 0;
      const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), ns);
      if (failure == std::errc() && ns > 0 && ns < 1e9) own.counter_error_ns = ns;
    }
  }
  const std::vector<AlignedClock> clocks = align_clocks(readings);
  for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r]->clock = clocks[r];
}

std::int64_t LiveJob::time_ns(const File& file, std::uint64_t ticks) const {
  return whole_ns(file.clock.time(static_cast<double>(ticks)));
}

// How long ago its newest event was, by the system clocks.
double LiveJob::age_ns(const File& file, std::int64_t utc_ns) {
  const format::FileHeader& header = file.growing.facts().header;
  const double newest = static_cast<double>(file.rank->last_ticks()) * live_job_parts::ns_per_tick(header);
  return std::max(0.0, static_cast<double>(utc_ns - header.start_utc_ns) - newest);
}

void LiveJob::poll() {
  find_files();
  for (const auto& [path, file] : files_) read(*file);
  choose_ranks();
  align();
  collect();
  finish_rows();
  ++polls_;
  std::erase_if(meetings_,
                [&](const auto& entry) { return entry.second.poll + live_job_parts::meeting_polls < polls_; });
}

std::map<int, std::uint64_t> LiveJob::recorded_stacks() const {
  std::map<int, std::uint64_t> ticks;
  for (const File* file : ranks_) {
    if (file->state != LiveState::running) continue;
    const auto recorded = file->rank->recorded_stack();
    ticks[file->number] = recorded ? recorded->ticks : 0;
  }
  return ticks;
}

Trace LiveJob::stacks_since(const std::map<int, std::uint64_t>& before) const {
  TraceBuilder run;
  for (const File* file : ranks_) {
    const auto recorded = file->rank->recorded_stack();
    const auto known = before.find(file->number);
    if (!recorded || (known != before.end() && known->second == recorded->ticks)) continue;
    RankBuilder& rank = run.add_rank(file->number, static_cast<int>(ranks_.size()));
    StackId stack = 0;
    for (const auto& frame : recorded->frames) {
      stack = rank.stacks().stack(stack, rank.stacks().frame({rank.names().intern(frame.function),
                                                              rank.names().intern(frame.file), frame.line}));
    }
    rank.add_main_thread().add_stack_sample(0, stack);
  }
  return run.finish();
}

void LiveJob::collect() {
  using namespace live_job_parts;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    File& file = *ranks_[r];
    for (const LiveIteration& iteration : file.rank->take_iterations()) {
      const std::int64_t from = time_ns(file, iteration.start), until = time_ns(file, iteration.end);
      steps_[r].push_back(until - from);
      if (steps_[r].size() > shown_iterations) steps_[r].pop_front();
      Row* const found = row_of(iteration.number);
      if (found == nullptr) continue;
      Row& row = *found;
      if (row.duration_ns[r] < 0) ++row.finished;
      row.duration_ns[r] = until - from;
      row.ranks[r].start_ns = from;
      for (const auto& [begin, end] : iteration.working) {
        row.ranks[r].working.push_back({time_ns(file, begin), time_ns(file, end)});
      }
      const double ticks = static_cast<double>(iteration.end - iteration.start);
      const double ns_per_tick = ticks > 0 ? static_cast<double>(until - from) / ticks : 0;
      for (std::size_t p = 0; p < phase_count; ++p) {
        row.phase_ns[p] += static_cast<double>(iteration.phase[p]) * ns_per_tick;
      }
    }
    for (const LiveCall& call : file.rank->take_calls()) meet(call, r);
  }
  while (open_rows_.size() > most_open_rows) open_rows_.erase(open_rows_.begin());
}

void LiveJob::meet(const LiveCall& call, std::uint32_t rank) {
  using namespace live_job_parts;
  File& file = *ranks_[rank];
  File::Entered& entered = file.entered[call.communicator];
  if (call.round > 0) {
    std::uint32_t& starts = entered.starts[call.sequence];
    starts = std::max(starts, call.round);
  } else {
    entered.highest = std::max<std::int64_t>(entered.highest, call.sequence);
  }
  const double waited = static_cast<double>(call.end - call.blocked_from) * ns_per_tick(file.growing.facts().header);
  file.longest_wait = std::max(file.longest_wait, static_cast<std::uint64_t>(waited));
  if (!call.timed) return;
  const std::size_t most_meetings =
      std::max<std::size_t>(256, meeting_bytes / ((ranks_.size() + 1) * sizeof(Meeting::calls[0])));
  if (meetings_.size() >= most_meetings) meetings_.clear();
  const MeetingKey key{call.communicator, call.sequence, call.round, call.function};
  Meeting& meeting = meetings_[key];
  if (meeting.calls.empty()) meeting.poll = polls_;
  meeting.calls.emplace_back(rank, call);
  if (meeting.calls.size() < call.members) return;
  complete(meeting);
  meetings_.erase(key);
}

// All members have left it: when each arrived, and when each was blocked in it.
void LiveJob::complete(const Meeting& meeting) {
  constexpr std::int64_t nobody = std::numeric_limits<std::int64_t>::min();
  const std::size_t n = meeting.calls.size();
  const std::optional<std::int64_t> number = meeting.calls.front().second.iteration;
  bool one_iteration = n == ranks_.size() && n > 1;
  Row::Common arrivals{.last_start_ns = nobody, .starts_ns = std::vector<std::int64_t>(ranks_.size(), nobody)};
  for (const auto& [rank, call] : meeting.calls) {
    std::int64_t& start = arrivals.starts_ns[rank];
    if (start != nobody) return;  // damaged numbers
    start = time_ns(*ranks_[rank], call.start);
    arrivals.last_start_ns = std::max(arrivals.last_start_ns, start);
    one_iteration = one_iteration && call.iteration && call.iteration == number;
  }
  Row* const common = one_iteration ? row_of(*number) : nullptr;
  for (const auto& [rank, call] : meeting.calls) {
    Row* const row = call.blocked_iteration ? row_of(*call.blocked_iteration) : nullptr;
    if (row == nullptr) continue;
    const File& file = *ranks_[rank];
    const std::size_t index = row == common ? row->common.size() : Row::no_common;
    (call.on_main ? row->ranks[rank].on_main : row->ranks[rank].on_helpers)
        .push_back({time_ns(file, call.polled_from), time_ns(file, call.end), arrivals.last_start_ns,
                    static_cast<std::uint32_t>(index)});
  }
  if (common != nullptr) common->common.push_back(std::move(arrivals));
}

// What each rank waited in the iteration, and how late it was.
void LiveJob::finish(Row& row) {
  std::vector<RankArrival> arrivals(row.ranks.size());
  std::vector<std::vector<BlockedTime>> blocked(row.ranks.size());
  blocked_before_.resize(row.ranks.size());
  std::vector<bool> awaited(row.common.size());
  for (std::size_t r = 0; r < row.ranks.size(); ++r) {
    Row::OfRank& rank = row.ranks[r];
    std::vector<BlockedTime> calls = std::move(rank.on_main);
    for (const BlockedTime& call : rank.on_helpers) add_uncovered(call, rank.working, calls);
    blocked[r] = outermost(std::move(calls));
    arrivals[r] = {.iteration_start_ns = rank.start_ns, .arrival_ns = 0, .waited_ns = 0, .blocked = {}};
    for (const BlockedTime& interval : blocked[r]) {
      rank.waited_ns += static_cast<double>(interval.wait_ns());
      if (interval.collective == Row::no_common) continue;
      arrivals[r].waited_ns += interval.wait_ns();
      awaited[interval.collective] = true;
    }
    std::vector<BlockedTime> last(blocked[r].end() - (blocked[r].empty() ? 0 : 1), blocked[r].end());
    blocked[r].insert(blocked[r].end(), blocked_before_[r].begin(), blocked_before_[r].end());
    blocked[r] = outermost(std::move(blocked[r]));
    arrivals[r].blocked = blocked[r];
    blocked_before_[r] = std::move(last);
    rank = {.start_ns = 0, .waited_ns = rank.waited_ns, .on_main = {}, .on_helpers = {}, .working = {}};
  }
  const Row::Common* last = nullptr;
  bool last_awaited = false;
  for (std::size_t c = 0; c < row.common.size(); ++c) {
    const Row::Common& one = row.common[c];
    const bool later = last == nullptr || one.last_start_ns >= last->last_start_ns;
    if (awaited[c] == last_awaited ? later : awaited[c]) last = &one, last_awaited = awaited[c];
  }
  if (last != nullptr) {
    for (std::size_t r = 0; r < arrivals.size(); ++r) arrivals[r].arrival_ns = last->starts_ns[r];
    add_last_awaited(row.lateness, arrivals);
  }
  row.common = {};
}

// The iteration's row; null where it was complete a short time ago, so that nothing can be added to it.
LiveJob::Row* LiveJob::row_of(std::int64_t number) {
  const auto found = open_rows_.find(number);
  if (found != open_rows_.end()) return &found->second;
  constexpr std::size_t latest = 8;
  for (std::size_t i = rows_.size() - std::min(rows_.size(), latest); i < rows_.size(); ++i) {
    if (rows_[i].first == number) return nullptr;
  }
  Row& row = open_rows_[number];
  row.duration_ns.assign(ranks_.size(), -1);
  row.ranks.resize(ranks_.size());
  return &row;
}

// Of a rank that has none while others are far ahead, none are expected.
std::size_t LiveJob::ranks_with_iterations() const {
  constexpr std::uint64_t far_ahead = 8;
  std::uint64_t most = 0;
  std::size_t without = 0;
  for (const File* file : ranks_) {
    most = std::max(most, file->rank->iterations());
    without += file->rank->iterations() == 0;
  }
  return ranks_.size() - (most >= far_ahead ? without : 0);
}

// An iteration is complete when all ranks have finished a later one as well, because a collective of it may end there;
// the last ones when all ranks have ended.
void LiveJob::finish_rows() {
  using namespace live_job_parts;
  const bool all_ended =
      std::ranges::all_of(ranks_, [](const File* file) { return file->state != LiveState::running; });
  const std::size_t needed = ranks_with_iterations();
  const auto is_finished = [&](const Row& row) { return row.finished > 0 && row.finished >= needed; };
  const auto last = std::find_if(open_rows_.rbegin(), open_rows_.rend(),
                                 [&](const auto& entry) { return is_finished(entry.second); });
  if (last == open_rows_.rend()) return;
  const std::int64_t newest = last->first;
  for (auto row = open_rows_.begin(); row != open_rows_.end() && row->first <= newest;) {
    if (!is_finished(row->second) || (row->first == newest && !all_ended)) {
      ++row;
      continue;
    }
    finish(row->second);
    row->second.lateness.step_ns = static_cast<double>(std::max<std::int64_t>(row->second.duration_ns.back(), 0));
    rows_.emplace_back(row->first, std::move(row->second));
    if (rows_.size() > kept_rows) rows_.pop_front();
    ++finished_rows_;
    row = open_rows_.erase(row);
  }
  test_lateness_if_due(all_ended);
}

// Each look at a running job may name somebody by chance, so the looks share one level (alpha spending: K. K. G. Lan
// and D. L. DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70, 1983). Look k spends 1/(k (k +
// 1)) of it, which adds up to less than the level, and a look comes when half as many rows again as at the last one are
// there, or the job has ended. Looks that judge nothing spend nothing; they take a small share of a core at most.
void LiveJob::test_lateness_if_due(bool now) {
  using namespace live_job_parts;
  if (ranks_.size() < 2 || finished_rows_ == tested_rows_) return;
  if (!now && (clock_s(CLOCK_MONOTONIC) < next_test_s_ || finished_rows_ < next_look_)) return;
  const double before = clock_s(CLOCK_PROCESS_CPUTIME_ID);
  const std::uint64_t dropped = finished_rows_ - rows_.size();
  const std::uint64_t warm_up = std::max<std::uint64_t>(1, finished_rows_ / 10);
  LatenessTable table;
  table.ranks = ranks_.size();
  double clock_error = 0;
  for (const File* file : ranks_) clock_error = std::max(clock_error, file->clock.error_ns);
  for (std::size_t i = warm_up > dropped ? warm_up - dropped : 0; i < rows_.size(); ++i) {
    if (!rows_[i].second.lateness.late_ns.empty()) add_iteration(table, rows_[i].first, rows_[i].second.lateness);
  }
  lateness_ = test_lateness(table, clock_error);
  if (lateness_->judged) {
    const auto look = static_cast<double>(++looks_);
    correct_for_all(std::array{Accuser{.late = &*lateness_}}, accusation_level / (look * (look + 1)));
    next_look_ = finished_rows_ + finished_rows_ / 2;
  }
  tested_rows_ = finished_rows_;
  next_test_s_ = clock_s(CLOCK_MONOTONIC) + (clock_s(CLOCK_PROCESS_CPUTIME_ID) - before) / test_share;
}

// Not blocked in MPI, and not silent for longer than ever before. `age` is that of its newest event, in ns.
bool LiveJob::makes_progress(const File& file, double age) {
  using namespace live_job_parts;
  const double ns = ns_per_tick(file.growing.facts().header);
  if (const auto since = file.rank->in_mpi_since()) {
    return static_cast<double>(file.rank->last_ticks() - *since) * ns + age < silent_ns;
  }
  return age < std::max(silent_ns, 2 * ns * static_cast<double>(file.rank->longest_silence()));
}

// Through the report's own search, from the calls that are open and the last ones that ended.
std::vector<Finding> LiveJob::findings() const {
  using namespace live_job_parts;
  if (ranks_.size() < 2) return {};
  const std::int64_t utc = utc_ns();
  std::vector<CollectiveCalls> all;
  std::int64_t zero = std::numeric_limits<std::int64_t>::max();
  for (const File* file : ranks_) zero = std::min(zero, time_ns(*file, 0));
  for (const File* file : ranks_) {
    CollectiveCalls& own = all.emplace_back();
    own.rank = file->number;
    own.world_size = static_cast<int>(ranks_.size());
    own.end_ns = time_ns(*file, file->rank->last_ticks()) - zero;
    if (file->state == LiveState::running) own.end_ns += whole_ns(age_ns(*file, utc));
    own.open_slice = label(file->rank->open_range(), 40);
    const format::FileHeader& header = file->growing.facts().header;
    const bool lost = std::ranges::any_of(header.dropped, [](std::uint64_t n) { return n > 0; });
    own.complete_at_end = !lost && !file->rank->paused() && file->problem.empty();
    own.complete = own.complete_at_end && file->growing.skipped_events() == 0;
    for (const auto& [number, communicator] : file->rank->communicators()) {
      own.communicators.push_back({communicator.identity, label(communicator.name, 40), communicator.own_rank});
    }
    own.busy = file->state == LiveState::running && makes_progress(*file, age_ns(*file, utc));
    for (const LiveRank::OpenMessage& open : file->rank->open_messages()) {
      const auto communicator = file->rank->communicators().find(open.communicator);
      if (communicator == file->rank->communicators().end()) continue;
      const std::string operation = operation_of(open.function);
      own.pending.push_back({.communicator = communicator->second.identity,
                             .operation = operation,
                             .peer = open.peer,
                             .tag = open.tag,
                             .sends = blocks_in_send(operation),
                             .receives = blocks_in_receive(operation),
                             .since_ns = time_ns(*file, open.since) - zero,
                             .until_ns = own.end_ns});
    }
    const auto add = [&](std::uint64_t communicator, std::uint64_t sequence, std::uint32_t round,
                         std::string operation) -> CollectiveCall& {
      CollectiveCall& call = own.calls.emplace_back();
      call.communicator = communicator;
      call.sequence = sequence;
      call.round = round;
      call.operation = static_cast<std::uint32_t>(own.operations.size());
      own.operations.push_back(std::move(operation));
      return call;
    };
    for (const auto& [communicator, entered] : file->entered) {
      for (const auto& [sequence, starts] : entered.starts) add(communicator, sequence, starts, "");
      if (entered.highest < 0) continue;
      CollectiveCall& call = add(communicator, static_cast<std::uint64_t>(entered.highest), 0, "");
      call.end_ns = static_cast<std::int64_t>(file->longest_wait);
    }
    for (const LiveCall& open : file->rank->open_calls()) {
      CollectiveCall& call =
          add(open.communicator, open.sequence, open.round,
              open.range != 0 ? label(file->rank->name(open.range), 40) : operation_of(open.function));
      call.unfinished = true;
      call.members = open.members;
      call.start_ns = call.blocked_from_ns = time_ns(*file, open.blocked_from) - zero;
      call.end_ns = open.polled == 0 ? own.end_ns : time_ns(*file, open.polled) - zero;
    }
  }
  std::vector<Finding> found;
  for (const Hang& hang : find_hangs(all)) {
    found.push_back({.severity = Severity::problem, .text = hang_text(hang), .kind = "hang"});
  }
  for (const LateRank& late : lateness_ ? lateness_->late : std::vector<LateRank>()) {
    found.push_back(
        {.severity = Severity::warning,
         .text = fmt::format("Rank {} comes {} late, {} of the step.", ranks_[late.rank]->number,
                             duration(static_cast<std::int64_t>(late.behind_ns)), percent(late.share_of_step)),
         .kind = "slow rank",
         .places = {{.rank = late.rank}}});
  }
  return found;
}

WatchFrame LiveJob::frame() {
  using namespace live_job_parts;
  WatchFrame frame;
  frame.path = run_.name();
  const std::int64_t utc = utc_ns();
  std::set<std::string> hosts;
  std::int64_t first_utc = utc, last_utc = 0;
  const std::size_t shown = std::min(rows_.size(), shown_iterations);
  const auto begin = rows_.end() - static_cast<std::ptrdiff_t>(shown);
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const File& file = *ranks_[r];
    const format::TraceFacts& facts = file.growing.facts();
    hosts.insert(facts.host);
    first_utc = std::min(first_utc, facts.header.start_utc_ns);
    const auto age = static_cast<std::int64_t>(age_ns(file, utc));
    last_utc = std::max(last_utc, file.state == LiveState::running ? utc : utc - age);
    frame.expected_ranks =
        std::max(frame.expected_ranks, number_in(file.rank->settings(), "world_size", facts.header.world_size));
    WatchedRank& rank = frame.ranks.emplace_back();
    rank.rank = file.number;
    rank.host = facts.host;
    rank.state = file.state;
    rank.iterations = file.rank->iterations();
    rank.step_ns = median(std::vector<std::int64_t>(steps_[r].begin(), steps_[r].end()));
    double waited = 0, late = 0, time = 0, judged = 0;
    for (auto row = begin; row != rows_.end(); ++row) {
      waited += row->second.ranks[r].waited_ns;
      time += static_cast<double>(std::max<std::int64_t>(row->second.duration_ns[r], 0));
      if (row->second.lateness.behind_ns.empty()) continue;
      late += row->second.lateness.behind_ns[r];
      ++judged;
    }
    rank.wait_share = time > 0 ? waited / time : 0;
    rank.late_ns = judged > 0 ? late / judged : 0;
    rank.newest_age_ns = age;
    rank.doing = file.state == LiveState::running ? file.rank->doing() : "";
    rank.problem = file.problem;
    rank.nvtx_events = file.growing.events(format::Family::nvtx);
    rank.mpi_events = file.growing.events(format::Family::mpi);
    rank.skipped_events = file.growing.skipped_events();
  }
  frame.hosts = hosts.size();
  frame.elapsed_ns = std::max<std::int64_t>(last_utc - first_utc, 0);
  // A rank that never wrote a file is not waited for without end.
  const bool all_there = static_cast<int>(ranks_.size()) >= frame.expected_ranks || polls_ > changed_ + patient_polls;
  frame.ended = !ranks_.empty() && all_there &&
                std::ranges::all_of(ranks_, [](const File* file) { return file->state != LiveState::running; });
  frame.iterations = finished_rows_;
  if (shown > 0) {
    frame.newest_iteration = rows_.back().first;
    std::vector<std::int64_t> steps;
    double total = 0;
    for (auto row = begin; row != rows_.end(); ++row) {
      double sum = 0;
      for (const std::int64_t ns : row->second.duration_ns) sum += static_cast<double>(std::max<std::int64_t>(ns, 0));
      frame.steps_ns.push_back(sum / static_cast<double>(row->second.finished));
      steps.push_back(static_cast<std::int64_t>(frame.steps_ns.back() + 0.5));
      for (std::size_t p = 0; p < phase_count; ++p) {
        frame.phase_shares[p] += row->second.phase_ns[p];
        total += row->second.phase_ns[p];
      }
    }
    for (double& share : frame.phase_shares) share = total > 0 ? share / total : 0;
    frame.median_ns = median(steps);
    frame.p95_ns = quantile(steps, 0.95);
    if (shown >= 8) {
      const auto half = steps.begin() + static_cast<std::ptrdiff_t>(shown / 2);
      const auto older = median(std::vector<std::int64_t>(steps.begin(), half));
      const auto newer = median(std::vector<std::int64_t>(half, steps.end()));
      if (older > 0) frame.trend = static_cast<double>(newer) / static_cast<double>(older) - 1;
    }
  }
  frame.lateness = lateness_;
  frame.findings = findings();
  for (const auto& [path, why] : left_out_) frame.notes.push_back(why.starts_with(path) ? why : path + ": " + why);
  return frame;
}

}  // namespace paceline::analysis
