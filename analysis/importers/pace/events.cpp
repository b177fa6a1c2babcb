// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/pace/events.h"

#include <utility>

namespace paceline::analysis {
namespace {

std::uint16_t events_of(const format::BlockEntry& block, format::Family family) {
  return block.header.count[static_cast<std::size_t>(family)];
}

}  // namespace

PaceEvents::PaceEvents(format::TraceFileReader reader) : reader_(std::move(reader)) {
  for (const format::TrackBlocks& track : reader_->tracks()) {
    slots_ += track.slots;
    TrackId& made = tracks_.emplace_back(TrackId{track.id, track.thread_id});
    for (const format::BlockEntry& block : track.blocks) {
      made.ranges += std::size_t{events_of(block, format::Family::nvtx)} + events_of(block, format::Family::mpi);
      has_nccl_ = has_nccl_ || !block.has_summary() || events_of(block, format::Family::nccl) > 0;
      last_ticks_ = std::max(last_ticks_, block.header.last_ticks);
    }
  }
}

PaceEvents::PaceEvents(format::TraceFile file) : file_(std::move(file)), last_ticks_(file_.left_out.last_ticks) {
  for (const format::Track& track : file_.tracks) tracks_.push_back({track.id, track.thread_id});
}

bool PaceEvents::is_needed(const format::BlockEntry& block, Part part) const {
  if (!block.has_summary()) return true;
  switch (part) {
    case Part::definitions:
      return block.may_contain(format::has_definitions | format::has_settings | format::has_clock);
    case Part::cuda:
      return events_of(block, format::Family::cuda) > 0;
    case Part::nccl:  // the ends of NCCL's events are not counted with them
      return has_nccl_ && events_of(block, format::Family::nccl) + events_of(block, format::Family::other) > 0;
    case Part::everything:
      return true;
  }
  return true;
}

}  // namespace paceline::analysis
