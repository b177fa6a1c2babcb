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

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "analysis/load/run_paths.h"
#include "analysis/run/finding.h"
#include "analysis/trace/trace.h"
#include "analysis/watch/live_files.h"
#include "analysis/watch/live_steps.h"
#include "analysis/watch/watch_frame.h"

namespace paceline::analysis {

class LiveJob {
 public:
  // The job's directory, or those of its hosts. They may not exist yet. Only files directly in them count.
  explicit LiveJob(RunPaths run) : files_(std::move(run)) {}

  // Looks for new files and reads what was written since the last call. Throws nothing because of a file: a file that
  // cannot be read is a problem of its rank. Throws Error where the path is neither absent nor a directory nor a file.
  void poll();

  // True as soon as one file was read.
  bool any_ranks() const { return files_.any(); }
  WatchFrame frame();

  // The ranks that run, with the ticks of the stack that was recorded last because of a hang or a request (0: none).
  std::map<int, std::uint64_t> recorded_stacks() const;
  // A trace that has nothing but these stacks, as one sample of each main thread; only of ranks whose stack is another
  // one than that of `before`.
  Trace stacks_since(const std::map<int, std::uint64_t>& before) const;

  std::uint64_t bytes_read() const { return files_.bytes_read(); }

 private:
  void align();
  void import();
  bool all_ended() const;
  std::vector<Finding> findings() const;

  LiveFiles files_;
  LiveSteps steps_;
  std::uint64_t polls_ = 0, changed_ = 0;  // `changed_`: the poll that last found another rank
  bool realign_ = true;
  std::int64_t aligned_utc_ns_ = 0;
  std::size_t known_exchanges_ = 0;
};

}  // namespace paceline::analysis
