// SPDX-License-Identifier: Apache-2.0
// The events of one .pace file: decoded block by block when a pass asks for them, or made by hand in memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/trace/progress.h"
#include "profiler/format/events.h"
#include "profiler/format/reader.h"
#include "profiler/format/trace_file_reader.h"

namespace paceline::analysis {

// The domain and the category of a scope (format::pack_scope), and the id of its name.
struct ScopeParts {
  std::uint16_t domain = 0, category = 0;
  std::uint32_t name = 0;
};
constexpr ScopeParts parts_of(std::uint64_t scope) {
  return {static_cast<std::uint16_t>(scope >> 48), static_cast<std::uint16_t>(scope >> 32),
          static_cast<std::uint32_t>(scope)};
}

// The scope of a range or a mark. All of their types have it in the same place.
constexpr std::uint64_t scope_of(const format::Slot& head) { return format::unpack<format::events::Push>(&head).scope; }
template <class Event>
inline constexpr bool has_scope_like_push = [] {
  const auto slots = format::pack(0, Event{.scope = ~std::uint64_t{0}});
  return scope_of(slots.front()) == ~std::uint64_t{0};
}();
static_assert(has_scope_like_push<format::events::PushPayload> && has_scope_like_push<format::events::Mark> &&
              has_scope_like_push<format::events::MarkPayload> && has_scope_like_push<format::events::Start> &&
              has_scope_like_push<format::events::StartPayload>);

// The raw bytes of an event whose type has bytes: a name, a payload or a part of one.
inline std::span<const std::byte> bytes_of(const format::Slot& head) {
  return {reinterpret_cast<const std::byte*>(&head + 1), format::unpack<format::events::Name>(&head).bytes};
}

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
  void count_in(PartCounter& progress) { progress_ = &progress; }

  // What a pass needs: it may visit more.
  enum class Part { definitions, cuda, nccl, everything };

  // Calls visit(head) for each whole event of a track, in its order. The extension slots lie behind the head, where
  // unpack() and bytes_of() find them. One thread at a time.
  template <class Visit>
  void each(std::size_t track, Part part, Visit&& visit) const {
    const auto visit_head = [&](const format::Slot& head, const format::Slot*) { visit(head); };
    if (!reader_) return format::for_each_event(std::span(file_.tracks[track].slots), visit_head);
    std::unique_ptr<format::BlockCursor> cursor;
    for (const format::BlockEntry& block : reader_->tracks()[track].blocks) {
      if (!is_needed(block, part)) continue;
      // A pass may begin another one, which then has a cursor of its own.
      if (!cursor) cursor = spare_ ? std::move(spare_) : std::make_unique<format::BlockCursor>(*reader_);
      if (progress_ != nullptr && part == Part::everything) progress_->add(block.header.slots);
      format::for_each_event(cursor->slots(block), visit_head);
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
  PartCounter* progress_ = nullptr;
  bool has_nccl_ = false;
  mutable std::unique_ptr<format::BlockCursor> spare_;
};

// Gathers the payloads that come right before their event, which may be in the next block.
class PendingPayloads {
 public:
  // To be called for each event of a track; true for a payload. Others may ask for slots() and then forget().
  bool take(const format::Slot& head) {
    if (type_of(head) != format::EventType::payload && type_of(head) != format::EventType::payload_part) return false;
    slots_.insert(slots_.end(), &head, &head + 1 + format::extension_slots(head));
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
