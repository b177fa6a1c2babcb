// SPDX-License-Identifier: Apache-2.0
// A job that is still running, from the .pace files that its ranks are writing.
//
//   LiveJob job("run");
//   for (;;) {
//     job.poll();                               // reads only what is new
//     print(render_frame(job.frame(), 80, 70));
//   }
//
// Each poll imports the last part of each rank (live_rank.h) and computes what the report computes (run_index.h). So
// both agree on iterations, phases, waits and lateness. An iteration that all ranks have finished becomes a row of
// figures, and what lies before it is dropped.
//
// Memory: the events of the iterations that not all ranks have finished, 8 million slots at most or 16,000 a rank.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/clocks/alignment.h"
#include "analysis/communication/lateness.h"
#include "analysis/load/run_paths.h"
#include "analysis/run/finding.h"
#include "analysis/run/index/run_index.h"
#include "analysis/trace/trace.h"
#include "analysis/watch/live_rank.h"

namespace paceline::analysis {

enum class LiveState : std::uint8_t {
  running,  // or not known to have ended: the process is on another machine
  ended,    // the recorder closed the file
  killed,   // the process is gone and its file was not closed
  lost,     // the file vanished or cannot be read any more
};

struct WatchedRank {
  int rank = 0;
  std::string host;
  LiveState state = LiveState::running;
  std::uint64_t iterations = 0;    // finished ones
  std::int64_t step_ns = 0;        // median of its last iterations; 0: it has none
  double wait_share = 0;           // of its last iterations: waiting for other ranks in collectives
  double late_ns = 0;              // mean over its last iterations: behind the median of the other ranks (lateness.h)
  std::int64_t newest_age_ns = 0;  // since its newest range, mark or MPI call
  std::string doing;               // the innermost range or call of the main thread; hostile text
  std::string problem;             // damage or failure, for people; ""
  std::uint64_t nvtx_events = 0, mpi_events = 0, skipped_events = 0;
};

struct WatchFrame {
  std::string path;
  std::vector<WatchedRank> ranks;  // by rank
  int expected_ranks = 0;          // of the job; 0 = not known
  std::size_t hosts = 0;
  std::int64_t elapsed_ns = 0;  // since the start of the first process
  bool ended = false;           // all ranks have

  std::uint64_t iterations = 0;            // that all ranks finished
  std::int64_t newest_iteration = 0;       // the number of the last of them
  std::vector<double> steps_ns;            // of the last ones: mean over the ranks, the oldest first
  std::int64_t median_ns = 0, p95_ns = 0;  // of these
  std::optional<double> trend;  // the median of their newer half against that of their older half, as a change
  std::array<double, phase_count> phase_shares{};  // of these steps, mean over the ranks

  std::optional<LatenessTest> lateness;  // nothing until it was tested; ranks are indices into `ranks`
  std::vector<Finding> findings;         // hangs and slow ranks; places are in `ranks`
  std::vector<std::string> notes;        // files that were left out, one line each
};

class LiveJob {
 public:
  // The job's directory, or those of its hosts. They may not exist yet. Only files directly in them count.
  explicit LiveJob(RunPaths run) : run_(std::move(run)) {}

  // Looks for new files and reads what was written since the last call. Throws nothing because of a file: a file that
  // cannot be read is a problem of its rank. Throws Error where the path is neither absent nor a directory nor a file.
  void poll();

  // True as soon as one file was read.
  bool any_ranks() const { return !files_.empty(); }
  WatchFrame frame();

  // The ranks that run, with the ticks of the stack that was recorded last because of a hang or a request (0: none).
  std::map<int, std::uint64_t> recorded_stacks() const;
  // A trace that has nothing but these stacks, as one sample of each main thread; only of ranks whose stack is another
  // one than that of `before`.
  Trace stacks_since(const std::map<int, std::uint64_t>& before) const;

  std::uint64_t bytes_read() const;

  static constexpr std::size_t shown_iterations = 64;  // the last ones, of which figures are shown

 private:
  struct File {
    explicit File(const std::filesystem::path& path) : growing(path) {}
    GrowingFile growing;
    std::unique_ptr<LiveRank> rank;  // null until its header was read
    int number = 0;                  // of the rank
    bool helper = false;             // a child process: its events are not shown
    LiveState state = LiveState::running;
    std::string problem;
    int failures = 0;  // polls in a row that could not read it
    AlignedClock clock;
    double newest_ns = 0;  // the age of its newest event, by the system clocks
    // What the last import showed.
    CollectiveCalls calls;
    std::vector<Iteration> iterations;      // of the window, counted from the first that was ever seen
    std::vector<std::int64_t> waited_ns;    // in each of them for other ranks in collectives
    std::string doing;                      // the innermost range or call of the main thread; hostile
    std::optional<std::int64_t> in_mpi_ns;  // how long the main thread has been in its call of MPI
    // What all imports showed.
    std::int64_t over = 0;             // iterations that are over, finished or not
    std::uint64_t finished = 0;        // those that were finished
    double over_until = 0;             // the end of the last of them, in ticks, which no new alignment of clocks moves
    double taken_until = 0;            // the end of the last that became a row
    std::uint64_t polled_until = 0;    // the newest event of the poll before
    std::deque<std::int64_t> steps;    // the last durations
    std::int64_t longest_wait_ns = 0;  // of the collectives that ended
    struct Entered {
      std::int64_t highest = -1;
      std::map<std::uint64_t, std::uint32_t> starts;  // of persistent collectives, by sequence
    };
    std::map<std::uint64_t, Entered> entered;  // by communicator
  };

  // An iteration that all ranks finished. Vectors have one value for each rank.
  struct Row {
    std::int64_t number = 0;
    std::size_t finished = 0;                          // ranks
    std::vector<std::int64_t> duration_ns;             // -1: it did not
    std::vector<std::int64_t> waited_ns;               // for other ranks in collectives
    std::array<std::int64_t, phase_count> phase_ns{};  // sum over the ranks
    LatenessRow lateness;
  };

  void find_files();
  void find_files_in(const std::filesystem::path& directory);
  void read(File& file);
  void choose_ranks();
  void forget_figures();
  void align();
  void import();
  void look_at(File& file, const RunIndex& index, std::size_t rank);
  void note_calls(File& file, CollectiveCalls calls);
  void drop_what_was_taken(File& file);
  std::size_t ranks_with_iterations() const;
  bool all_ended() const;
  void take_rows(const Collectives& collectives);
  void test_lateness_if_due(bool now);
  std::vector<Finding> findings() const;
  double ticks_at(const File& file, std::int64_t time_ns) const;
  double middle(const File& file, const Iteration& iteration) const;
  static bool makes_progress(const File& file);

  RunPaths run_;
  std::map<std::string, std::unique_ptr<File>> files_;  // by path
  std::map<std::string, std::string> left_out_;         // the reason, by path
  std::vector<File*> ranks_;                            // by number
  std::string job_;
  std::uint64_t polls_ = 0, changed_ = 0;  // `changed_`: the poll that last found another rank
  bool realign_ = true;
  std::int64_t aligned_utc_ns_ = 0;
  std::size_t known_exchanges_ = 0;
  double zero_ = 0;  // of the times of an import, on the aligned clock

  std::deque<Row> rows_;  // the last ones
  std::uint64_t finished_rows_ = 0;
  std::optional<LatenessTest> lateness_;
  std::uint64_t tested_rows_ = 0;
  double next_test_s_ = 0;
  std::uint64_t looks_ = 0, next_look_ = 0;  // the tests that were judged, and the rows that the next one needs
};

}  // namespace paceline::analysis
