// SPDX-License-Identifier: Apache-2.0
// The files of a running job: finds them, reads what is new in them, and chooses one for each rank.
#pragma once

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
#include "analysis/communication/collective_calls.h"
#include "analysis/load/run_paths.h"
#include "analysis/phases/iterations.h"
#include "analysis/watch/growing_file.h"
#include "analysis/watch/live_rank.h"
#include "analysis/watch/watch_frame.h"

namespace paceline::analysis {

struct LiveFile {
  explicit LiveFile(const std::filesystem::path& path) : growing(path) {}

  GrowingFile growing;
  std::unique_ptr<LiveRank> rank;  // null until its header was read
  int number = 0;                  // of the rank
  LiveState state = LiveState::running;
  std::string problem;
  int failures = 0;  // polls in a row that could not read it

  // Set by LiveJob::align().
  AlignedClock clock;
  double zero = 0;  // of the times of an import, on the aligned clock

  // What the last import showed.
  double newest_ns = 0;  // the age of its newest event, by the system clocks
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

  // Of a time of the import, in ticks.
  double ticks_at(std::int64_t time_ns) const;
  double middle(const Iteration& iteration) const;
  int world_size() const;  // 0 or less: not known
};

// The length of a tick by the file's header, 1 where it says nothing plausible.
double ns_per_tick(const format::FileHeader& header);

class LiveFiles {
 public:
  explicit LiveFiles(RunPaths run) : run_(std::move(run)) {}

  // Looks for new files and reads what was written since the last call. Returns whether other files are those of the
  // ranks now. Throws as LiveJob::poll() does.
  bool poll();

  const std::vector<LiveFile*>& ranks() const { return ranks_; }  // by number
  bool any() const { return !files_.empty(); }
  std::string name() const { return run_.name(); }
  std::uint64_t bytes_read() const;
  // Files that are not shown, one line each with the reason.
  std::vector<std::string> left_out() const;

 private:
  void find_in(const std::filesystem::path& directory);
  void read(LiveFile& file);
  std::vector<LiveFile*> choose_ranks();

  RunPaths run_;
  std::map<std::string, std::unique_ptr<LiveFile>> files_;  // by path
  std::map<std::string, std::string> left_out_;             // the reason, by path
  std::vector<LiveFile*> ranks_;
};

}  // namespace paceline::analysis
