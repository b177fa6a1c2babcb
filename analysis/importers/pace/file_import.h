// SPDX-License-Identifier: Apache-2.0
// Reads one .pace file into one rank of the model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/importers/pace/context.h"
#include "analysis/importers/pace/counters.h"
#include "analysis/importers/pace/cuda.h"
#include "analysis/importers/pace/mpi.h"
#include "analysis/importers/pace/nccl.h"
#include "analysis/importers/pace/nvtx.h"
#include "analysis/importers/pace/stacks.h"
#include "analysis/importers/pace/threads.h"

namespace paceline::analysis {

class PaceFileImport {
 public:
  // `process` names another process than the rank's own one, and goes in front of the labels; "" for the own one.
  PaceFileImport(PaceContext& context, std::string process);

  // What the file does not cover, the triggers and the communicators, for the rank.
  void add_rank_facts();

  // All tracks of the file. The events of the track at `main_index` make the main thread: they go to `onto`, if that is
  // not null, else to a track of their own. Returns the track of the main thread; nullptr if the file has no track.
  TrackBuilder* add_tracks(std::size_t main_index, bool is_rank_main, TrackBuilder* onto);

  // The counters, after all other tracks of the file.
  void add_counters(const std::string& process);

  // Why NCCL's calls cannot be matched with other ranks' ones, or "". After add_tracks().
  std::string nccl_missing() const { return nccl_.missing(); }
  // Submitted events whose time stamps could not be placed on the run's clock.

 private:
  // What is open on one track.
  struct Open {
    std::size_t track_index = 0;
    std::size_t gap = 0;  // the first that is not over
    std::vector<PaceMpi::Call> calls;
    PaceNvtx::Thread ranges;
    std::vector<std::int64_t> edges;             // when the thread's own ranges and calls begin and end
    std::optional<std::int64_t> waits_since_ns;  // for the recorder
  };

  TrackBuilder& add_track(std::size_t index, bool is_main, bool is_rank_main, TrackBuilder* onto);
  // Takes an event of the types that nearly all events have, if nothing else is to be done at its time. Returns false,
  // and does nothing, where event() is needed.
  bool simple_event(TrackBuilder& track, Open& open, const format::Slot& head);
  void event(TrackBuilder& track, Open& open, const format::Slot& head);
  void cut(TrackBuilder& track, Open& open, const PaceGap& gap);
  void add_recorder_wait(Open& open, std::int64_t time_ns, const format::Slot& head);
  std::vector<PaceGap> with_damage(std::uint32_t track) const;
  void add_lost(TrackBuilder& track, const format::LostStretch& lost) const;
  void add_lost_elsewhere();
  void add_counts();

  PaceContext& context_;
  const std::string process_;
  PaceCuda cuda_;
  PaceNccl nccl_;
  PaceNvtx nvtx_;
  PaceMpi mpi_;
  PaceCounters counters_;
  PaceThreads threads_;
  std::map<std::uint64_t, TrackBuilder*> thread_tracks_;  // by the system's id
  PaceStacks stacks_;
  PendingPayloads pending_;
  std::optional<std::uint64_t> recorder_wait_;  // the scope of the ranges in which a thread waited for the recorder
};

}  // namespace paceline::analysis
