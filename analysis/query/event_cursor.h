// SPDX-License-Identifier: Apache-2.0
// Walks slices or marks for the tables of that name.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/query/conditions.h"
#include "analysis/query/run_data.h"
#include "analysis/query/table.h"

namespace paceline::analysis {

enum EventField : int {
  field_id,
  field_rank,
  field_track,
  field_start,
  field_end,
  field_duration,
  field_depth,
  field_kind,
  field_name,
  field_domain,
  field_category,
  field_parent,
  field_self
};

// How the rows are ordered. The fields of order_by_words follow above `order_bits`, the first one lowest, each as one
// more than its number in `field_bits`.
enum EventOrder : int { order_any, order_by_place, order_by_start, order_by_words };
constexpr int order_bits = 2, field_bits = 4;
constexpr std::size_t most_order_fields = 6;
static_assert(order_bits + field_bits * most_order_fields < 31 && field_self < 1 << field_bits);

class EventCursor : public QueryCursor {
 public:
  // `fields` gives the field of each column, for the cursor's life.
  EventCursor(RunData& data, const std::vector<int>& fields, bool marks)
      : data_(data), fields_(fields), marks_(marks) {}

  void filter(int mode, std::span<const Condition> conditions) override;
  void next() override {
    if (by_start_) return next_merged();
    ++at_;
    settle();
  }
  void column(sqlite3_context* context, int column) override;
  std::int64_t row_id() const override;

 private:
  // A stretch of a track: positions begin to end - 1, or those of `order` where it is given.
  struct Stretch {
    TrackNumber track = 0;
    const std::uint32_t* order = nullptr;
    std::size_t begin = 0, end = 0;
  };
  struct Head {  // of a stretch, for merging
    std::int64_t start_ns = 0;
    std::size_t stretch = 0, at = 0;
  };

  const Slices& slices_of(TrackNumber track) const {
    const Track& of = *data_.tracks()[track].of;
    return marks_ ? of.marks : of.slices;
  }
  bool read(std::span<const Condition> conditions);
  void choose_kinds(std::span<const Condition> conditions);
  void add_stretches(int mode);
  void add_track(TrackNumber track, bool by_kind);
  void order_stretches(int fields);
  int compare(const Stretch& a, const Stretch& b, int field) const;
  void enter(std::size_t stretch);
  void settle();
  bool accepted(std::size_t position) const;
  std::size_t find(const Stretch& stretch, std::size_t from);
  void start_merging();
  void next_merged();
  std::uint32_t position() const { return static_cast<std::uint32_t>(order_ != nullptr ? order_[at_] : at_); }
  std::optional<std::int64_t> parent_of(std::uint32_t position);
  std::int64_t self_ns(std::uint32_t position) const;

  RunData& data_;
  const std::vector<int>& fields_;
  const bool marks_;
  int kind_filters_ = 0;  // how often the cursor was asked for some kinds only

  IntegerRange id_, rank_, track_, start_, end_, duration_, depth_, kind_;
  std::vector<char> wanted_;   // by kind; empty: all
  bool checks_other_ = false;  // conditions that are neither on kinds nor met by the stretches

  std::vector<Stretch> stretches_;
  std::size_t stretch_ = 0, at_ = 0, until_ = 0;
  const std::uint32_t* order_ = nullptr;
  const Slices* slices_ = nullptr;
  bool by_start_ = false;
  std::vector<Head> heads_;  // a heap, the earliest on top

  // The last parents that were found, by depth, on one track.
  struct Found {
    std::uint32_t position = 0;
    std::optional<std::uint32_t> parent;
  };
  std::vector<std::optional<Found>> parents_;
  const Slices* parents_of_ = nullptr;
};

}  // namespace paceline::analysis
