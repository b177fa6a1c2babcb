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
#include "analysis/importers/pace/import.h"
#include "analysis/phases/selection.h"
#include "analysis/statistics/statistics.h"
#include "analysis/text/labels.h"
#include "analysis/text/numbers.h"
#include "analysis/trace/builder.h"
#include "profiler/format/error.h"
#include "profiler/format/liveness.h"
#include "profiler/format/reader.h"

namespace paceline::analysis {
namespace live_job_parts {

namespace fs = std::filesystem;

constexpr std::size_t kept_rows = 512;  // iterations that the test of lateness looks at
constexpr std::size_t most_slots_of_job = 8 << 20, most_slots_of_rank = 16 << 10;
constexpr std::uint64_t patient_polls = 5;  // for ranks that are missing when all others have ended
constexpr double test_share = 0.004;        // of a core, for the test of lateness
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
  const std::size_t most_slots =
      std::max(most_slots_of_rank, most_slots_of_job / std::max<std::size_t>(files_.size(), 1));
  const auto take = [&] {
    const std::vector<NewEvents> news = file.growing.poll();
    if (file.rank == nullptr) file.rank = std::make_unique<LiveRank>();
    file.rank->add(news, file.growing.facts(), most_slots);
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
    return number_in(file.rank->process().definitions.settings, "rank", file.growing.facts().header.rank);
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
  rows_.clear();
  finished_rows_ = tested_rows_ = next_look_ = 0;
  lateness_.reset();
}

void LiveJob::align() {
  using namespace live_job_parts;
  std::size_t exchanges = 0;
  for (const File* file : ranks_) exchanges += file->rank->process().definitions.exchanges.size();
  const std::int64_t now = utc_ns();
  if (!realign_ && exchanges == known_exchanges_ && now - aligned_utc_ns_ < realign_ns) return;
  realign_ = false;
  known_exchanges_ = exchanges;
  aligned_utc_ns_ = now;
  std::vector<ClockReadings> readings;
  for (const File* file : ranks_) readings.push_back(readings_of(file->rank->process()));
  std::vector<AlignedClock> clocks = align_clocks(readings);
  zero_ = zero_of(clocks);
  for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r]->clock = std::move(clocks[r]);
}

double LiveJob::ticks_at(const File& file, std::int64_t time_ns) const {
  return file.clock.time.inverse()(static_cast<double>(time_ns) + zero_);
}

// In ticks.
double LiveJob::middle(const File& file, const Iteration& iteration) const {
  return ticks_at(file, iteration.start_ns + iteration.duration_ns / 2);
}

void LiveJob::poll() {
  find_files();
  for (const auto& [path, file] : files_) read(*file);
  choose_ranks();
  if (!ranks_.empty()) {
    align();
    import();
    test_lateness_if_due(all_ended());
  }
  ++polls_;
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

void LiveJob::import() {
  using namespace live_job_parts;
  const std::int64_t utc = utc_ns();
  std::vector<const PaceProcess*> processes;
  std::vector<AlignedClock> clocks;
  for (File* file : ranks_) {
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
  for (std::size_t r = 0; r < ranks_.size(); ++r) look_at(*ranks_[r], index, r);
  take_rows(index.collectives());
  std::vector<CollectiveCalls> calls = index.take_calls();
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    note_calls(*ranks_[r], std::move(calls[r]));
    drop_what_was_taken(*ranks_[r]);
  }
}

// The iterations of the window, and what the main thread does.
void LiveJob::look_at(File& file, const RunIndex& index, std::size_t r) {
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
      file.iterations, [&](const Iteration& iteration) { return middle(file, iteration) > file.over_until; });
  std::int64_t number = file.over - (first_new - file.iterations.begin());
  for (Iteration& iteration : file.iterations) {
    if (iteration.counted) iteration.number = number;
    ++number;
  }
  for (auto iteration = first_new; iteration != file.iterations.end(); ++iteration) {
    const std::int64_t end_ns = iteration->start_ns + iteration->duration_ns;
    if (!iteration->finished && end_ns >= rank.end_ns) break;  // it goes on
    ++file.over;
    file.over_until = ticks_at(file, end_ns);
    if (!iteration->finished) continue;
    ++file.finished;
    file.steps.push_back(iteration->duration_ns);
    if (file.steps.size() > shown_iterations) file.steps.pop_front();
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
void LiveJob::note_calls(File& file, CollectiveCalls calls) {
  for (const CollectiveCall& call : calls.calls) {
    if (call.counted) continue;
    File::Entered& entered = file.entered[call.communicator];
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
void LiveJob::drop_what_was_taken(File& file) {
  const auto first = std::ranges::find_if(
      file.iterations, [&](const Iteration& iteration) { return middle(file, iteration) > file.taken_until; });
  if (file.iterations.empty()) {
    file.rank->drop_before(file.polled_until);
  } else if (first != file.iterations.begin()) {
    file.rank->drop_before(static_cast<std::uint64_t>(std::max(0.0, ticks_at(file, std::prev(first)->start_ns) - 2)));
  }
  file.polled_until = file.rank->last_ticks();
}

// Of a rank that has none while others are far ahead, none are expected.
std::size_t LiveJob::ranks_with_iterations() const {
  constexpr std::uint64_t far_ahead = 8;
  std::uint64_t most = 0;
  std::size_t without = 0;
  for (const File* file : ranks_) {
    most = std::max(most, file->finished);
    without += file->finished == 0;
  }
  return ranks_.size() - (most >= far_ahead ? without : 0);
}

bool LiveJob::all_ended() const {
  return std::ranges::all_of(ranks_, [](const File* file) { return file->state != LiveState::running; });
}

// An iteration is complete when all ranks have finished a later one as well, because a collective of it may end there;
// the last ones when all ranks have ended.
void LiveJob::take_rows(const Collectives& collectives) {
  using namespace live_job_parts;
  struct Common {
    std::int64_t start_ns = std::numeric_limits<std::int64_t>::max();
    std::size_t finished = 0;
    std::vector<const Iteration*> of_rank;
  };
  std::map<std::int64_t, Common> commons;  // by number
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    for (const Iteration& iteration : ranks_[r]->iterations) {
      if (!iteration.finished || middle(*ranks_[r], iteration) <= ranks_[r]->taken_until) continue;
      Common& common = commons[iteration.number];
      common.of_rank.resize(ranks_.size());
      common.finished += common.of_rank[r] == nullptr;
      common.of_rank[r] = &iteration;
      common.start_ns = std::min(common.start_ns, iteration.start_ns);
    }
  }
  std::erase_if(commons, [needed = ranks_with_iterations()](const auto& one) { return one.second.finished < needed; });
  std::vector<std::pair<const std::int64_t, Common>*> complete;
  for (auto& one : commons) complete.push_back(&one);
  std::ranges::sort(complete, {}, [](const auto* one) { return one->second.start_ns; });
  if (!complete.empty() && !all_ended()) complete.pop_back();
  if (complete.empty()) return;
  std::vector<std::span<const Iteration>> iterations;
  for (const File* file : ranks_) iterations.emplace_back(file->iterations);
  std::map<std::int64_t, LatenessRow> lateness = lateness_rows(collectives, iterations);
  for (const auto* one : complete) {
    Row& row = rows_.emplace_back();
    row.number = one->first;
    row.finished = one->second.finished;
    row.lateness = std::move(lateness[one->first]);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      File& file = *ranks_[r];
      const Iteration* own = one->second.of_rank[r];
      row.duration_ns.push_back(own != nullptr ? own->duration_ns : -1);
      row.waited_ns.push_back(own != nullptr ? file.waited_ns[static_cast<std::size_t>(own - file.iterations.data())]
                                             : 0);
      if (own == nullptr) continue;
      for (std::size_t p = 0; p < phase_count; ++p) row.phase_ns[p] += own->phase_ns[p];
      file.taken_until = std::max(file.taken_until, ticks_at(file, own->start_ns + own->duration_ns));
    }
    if (rows_.size() > kept_rows) rows_.pop_front();
    ++finished_rows_;
  }
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
    if (!rows_[i].lateness.late_ns.empty()) add_iteration(table, rows_[i].number, rows_[i].lateness);
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

// Not blocked in MPI, and not silent for longer than ever before.
bool LiveJob::makes_progress(const File& file) {
  using namespace live_job_parts;
  if (file.in_mpi_ns) return static_cast<double>(*file.in_mpi_ns) < silent_ns;
  const double silence = ns_per_tick(file.growing.facts().header) * static_cast<double>(file.rank->longest_silence());
  return file.newest_ns < std::max(silent_ns, 2 * silence);
}

// Through the report's own search, from the calls of the windows and what was entered before them.
std::vector<Finding> LiveJob::findings() const {
  if (ranks_.size() < 2) return {};
  std::vector<CollectiveCalls> all;
  for (const File* file : ranks_) {
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
    const auto age = static_cast<std::int64_t>(file.newest_ns);
    last_utc = std::max(last_utc, file.state == LiveState::running ? utc : utc - age);
    frame.expected_ranks = std::max(frame.expected_ranks, number_in(file.rank->process().definitions.settings,
                                                                    "world_size", facts.header.world_size));
    WatchedRank& rank = frame.ranks.emplace_back();
    rank.rank = file.number;
    rank.host = facts.host;
    rank.state = file.state;
    rank.iterations = file.finished;
    rank.step_ns = median(std::vector<std::int64_t>(file.steps.begin(), file.steps.end()));
    double waited = 0, late = 0, time = 0, judged = 0;
    for (auto row = begin; row != rows_.end(); ++row) {
      waited += static_cast<double>(row->waited_ns[r]);
      time += static_cast<double>(std::max<std::int64_t>(row->duration_ns[r], 0));
      if (row->lateness.behind_ns.empty()) continue;
      late += row->lateness.behind_ns[r];
      ++judged;
    }
    rank.wait_share = time > 0 ? waited / time : 0;
    rank.late_ns = judged > 0 ? late / judged : 0;
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
  const bool all_there = static_cast<int>(ranks_.size()) >= frame.expected_ranks || polls_ > changed_ + patient_polls;
  frame.ended = !ranks_.empty() && all_there && all_ended();
  frame.iterations = finished_rows_;
  if (shown > 0) {
    frame.newest_iteration = rows_.back().number;
    std::vector<std::int64_t> steps;
    double total = 0;
    for (auto row = begin; row != rows_.end(); ++row) {
      double sum = 0;
      for (const std::int64_t ns : row->duration_ns) sum += static_cast<double>(std::max<std::int64_t>(ns, 0));
      frame.steps_ns.push_back(sum / static_cast<double>(row->finished));
      steps.push_back(static_cast<std::int64_t>(frame.steps_ns.back() + 0.5));
      for (std::size_t p = 0; p < phase_count; ++p) {
        frame.phase_shares[p] += static_cast<double>(row->phase_ns[p]);
        total += static_cast<double>(row->phase_ns[p]);
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
