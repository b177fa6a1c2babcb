// The events of one .pace file: decoded block by block when a pass asks for them, or made by hand in memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/trace/progress.h"
#include "profiler/format/reader.h"
#include "profiler/format/trace_file_reader.h"

namespace paceline::analysis {

class PaceEvents {
 public:
  explicit PaceEvents(format::TraceFileReader reader);
  // A file that was read as a whole, or made by a test.
  explicit PaceEvents(format::TraceFile file);

  struct TrackId {
    std::uint32_t id = 0;
    std::uint64_t thread_id = 0;
    std::size_t ranges = 0;  // NVTX ranges, marks and MPI calls at most; 0 = not known
  };
  std::span<const TrackId> tracks() const { return tracks_; }  // by id
  const format::TraceFacts& facts() const { return reader_ ? reader_->facts() : file_; }
  // Events that are counted and will not be visited.
  const format::EventTotals& left_out() const { return file_.left_out; }
  // At least the ticks of every event that a pass may leave out. Relative, as in events.
  std::uint64_t last_ticks() const { return last_ticks_; }
  // What was found damaged, by opening the file and by the passes so far; "" where nothing was.
  std::string damage() const { return reader_ ? reader_->damage() : file_.damage; }

  std::uint64_t slots() const { return slots_; }  // of all tracks together
  // Counts the slots of every pass over everything from here on.
  void count_in(ProgressCounter& progress) { progress_ = &progress; }

  // What a pass needs: it may visit more.
  enum class Part { definitions, cuda, nccl, everything };

  // Calls visit(head, extension slots) for each whole event of a track, in its order. One thread at a time.
  template <class Visit>
  void each(std::size_t track, Part part, Visit&& visit) const {
    if (!reader_) return format::for_each_event(std::span(file_.tracks[track].slots), visit);
    std::unique_ptr<format::BlockCursor> cursor;
    for (const format::BlockEntry& block : reader_->tracks()[track].blocks) {
      if (!is_needed(block, part)) continue;
      // A pass may begin another one, which then has a cursor of its own.
      if (!cursor) cursor = spare_ ? std::move(spare_) : std::make_unique<format::BlockCursor>(*reader_);
      if (progress_ != nullptr && part == Part::everything) progress_->add(block.header.slots);
      format::for_each_event(cursor->slots(block), visit);
    }
    if (cursor) spare_ = std::move(cursor);
  }
  template <class Visit>
  void each(Part part, Visit&& visit) const {
    for (std::size_t track = 0; track < tracks_.size(); ++track) each(track, part, visit);
  }

 private:
  bool is_needed(const format::BlockEntry& block, Part part) const;

  std::optional<format::TraceFileReader> reader_;
  format::TraceFile file_;  // where there is no reader
  std::vector<TrackId> tracks_;
  std::uint64_t last_ticks_ = 0, slots_ = 0;
  ProgressCounter* progress_ = nullptr;
  bool has_nccl_ = false;
  mutable std::unique_ptr<format::BlockCursor> spare_;
};

// Gathers the payloads that come right before their event, which may be in the next block.
class PendingPayloads {
 public:
  // To be called for each event of a track; true for a payload. Others may ask for slots() and then forget().
  bool take(const format::Slot& head, const format::Slot* extension) {
    if (type_of(head) != format::EventType::payload && type_of(head) != format::EventType::payload_part) return false;
    slots_.push_back(head);
    slots_.insert(slots_.end(), extension, extension + format::extension_slots(head));
    return true;
  }
  std::span<const format::Slot> slots() const { return slots_; }
  void forget() {
    if (!slots_.empty()) slots_.clear();
  }

 private:
  std::vector<format::Slot> slots_;
};

}  // namespace paceline::analysis
