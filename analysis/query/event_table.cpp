// SPDX-License-Identifier: Apache-2.0
// The tables `slices` and `marks`: cursors over the columns of the tracks.
//
// Conditions on id, rank, track, kind, name, domain, category, depth and times choose the tracks and the stretches of
// their columns that are walked; everything else is left to SQLite. Rows come rank after rank, track after track, in
// the order of their starts, or as ORDER BY start_ns, GROUP BY kind and the like want them, so that SQLite need not
// sort.
#include <algorithm>
#include <optional>

#include "analysis/query/event_cursor.h"

namespace paceline::analysis {
namespace event_plans {

struct FieldColumn {
  EventField field;
  QueryColumn column;
};

constexpr FieldColumn slice_columns[] = {
    {field_id, {"id", "INTEGER", "", "number of the slice, the same in every query and export of these files"}},
    {field_rank, {"rank", "INTEGER", "", "rank of the process"}},
    {field_track, {"track", "INTEGER", "", "number of its track (tracks.track)"}},
    {field_start, {"start_ns", "INTEGER", "ns", "start, since the run's zero"}},
    {field_end, {"end_ns", "INTEGER", "ns", "end, since the run's zero"}},
    {field_duration, {"duration_ns", "INTEGER", "ns", "end - start"}},
    {field_depth, {"depth", "INTEGER", "", "nesting on its track; 0 is the outermost"}},
    {field_kind, {"kind", "INTEGER", "", "number of its domain, category and name (kinds.kind)"}},
    {field_name, {"name", "TEXT", "", "function, range or kernel"}},
    {field_domain, {"domain", "TEXT", "", "'mpi', 'cuda', 'nccl', an NVTX domain, or ''"}},
    {field_category, {"category", "TEXT", "", "'collective', 'kernel', …, an NVTX category, or ''"}},
    {field_parent, {"parent", "INTEGER", "", "id of the slice around it on its track, or NULL"}},
    {field_self, {"self_ns", "INTEGER", "ns", "duration without the slices directly inside it"}},
};

constexpr FieldColumn mark_columns[] = {
    {field_id, {"id", "INTEGER", "", "number of the mark, below 0; the same in every query and export of these files"}},
    {field_rank, {"rank", "INTEGER", "", "rank of the process"}},
    {field_track, {"track", "INTEGER", "", "number of its track (tracks.track)"}},
    {field_start, {"time_ns", "INTEGER", "ns", "time, since the run's zero"}},
    {field_kind, {"kind", "INTEGER", "", "number of its domain, category and name (kinds.kind)"}},
    {field_name, {"name", "TEXT", "", "message"}},
    {field_domain, {"domain", "TEXT", "", "NVTX domain, or ''"}},
    {field_category, {"category", "TEXT", "", "NVTX category, or ''"}},
};

// The fields that a plan has conditions on.
struct Taken {
  bool equal[field_self + 1] = {}, above[field_self + 1] = {}, below[field_self + 1] = {}, pattern[field_self + 1] = {};

  void add(int field, Operator comparison) {
    equal[field] |= comparison == Operator::equal;
    above[field] |= comparison == Operator::greater || comparison == Operator::at_least;
    below[field] |= comparison == Operator::less || comparison == Operator::at_most;
    pattern[field] |= comparison == Operator::like || comparison == Operator::glob;
  }
};

bool is_text(int field) { return field == field_name || field == field_domain || field == field_category; }

// True if the condition helps to find the rows. An id is only looked up.
bool is_useful(int field, const QueryPlan::Offer& offer) {
  if (is_text(field)) return offer.comparison == Operator::equal ? offer.binary : !is_range(offer.comparison);
  if (field == field_id) return offer.comparison == Operator::equal;
  return field <= field_kind && is_range(offer.comparison);
}

// True if rows that come track after track are in this order.
bool in_place(const std::vector<QueryPlan::OrderTerm>& terms, const std::vector<int>& fields, const Taken& taken) {
  int level = taken.equal[field_track] ? 2 : taken.equal[field_rank] ? 1 : 0;  // 1: one rank, 2: one track, 3: one row
  for (const QueryPlan::OrderTerm& term : terms) {
    if (level == 3) return true;
    const int field = term.column < 0 ? static_cast<int>(field_id) : fields[static_cast<std::size_t>(term.column)];
    if (taken.equal[field]) continue;
    if (term.descending) return false;
    if (field == field_id) {
      level = 3;
    } else if (field == field_rank && level == 0) {
      level = 1;
    } else if (field == field_track && level <= 1) {
      level = 2;
    } else {
      // Starts of one track may be equal, so that only the last term can be the start.
      return field == field_start && level == 2 && &term == &terms.back();
    }
  }
  return true;
}

// The fields to order by, for order_by_words, where each stretch of one kind has one value of them.
std::optional<int> words_order(const std::vector<QueryPlan::OrderTerm>& terms, const std::vector<int>& fields) {
  if (terms.size() > most_order_fields) return std::nullopt;
  int packed = 0, shift = 0;
  for (const QueryPlan::OrderTerm& term : terms) {
    if (term.column < 0 || term.descending) return std::nullopt;
    const int field = fields[static_cast<std::size_t>(term.column)];
    if (field != field_rank && field != field_track && field != field_kind && !is_text(field)) return std::nullopt;
    packed |= (field + 1) << shift;
    shift += field_bits;
  }
  return packed;
}

int order_mode(QueryPlan& plan, const std::vector<int>& fields, const Taken& taken) {
  const auto terms = plan.order();
  if (terms.empty()) return order_any;
  if (in_place(terms, fields, taken)) {
    plan.order_is_kept();
    return order_by_place;
  }
  if (const auto words = words_order(terms, fields)) {
    plan.order_is_kept();
    return order_by_words | *words << order_bits;
  }
  const auto& first = terms.front();
  if (terms.size() == 1 && !first.descending && first.column >= 0 &&
      fields[static_cast<std::size_t>(first.column)] == field_start) {
    plan.order_is_kept();
    return order_by_start;
  }
  return order_any;
}

class EventTable : public QueryTable {
 public:
  EventTable(RunData& data, bool marks)
      : QueryTable(marks ? "marks" : "slices",
                   marks ? "moments on the tracks: NVTX marks"
                         : "stretches of time on the tracks: ranges, MPI, CUDA and NCCL calls, kernels and copies"),
        data_(data),
        marks_(marks) {
    for (const auto& of : marks ? std::span<const FieldColumn>(mark_columns) : slice_columns) {
      fields_.push_back(of.field);
      columns_.push_back(of.column);
    }
    for (const RunData::TrackPlace& place : data.tracks()) {
      count_ += static_cast<double>((marks ? place.of->marks : place.of->slices).size());
    }
  }

  std::span<const QueryColumn> columns() const override { return columns_; }
  void plan(QueryPlan& plan) const override {
    Taken taken;
    for (const QueryPlan::Offer& offer : plan.offers()) {
      const int field = offer.column < 0 ? static_cast<int>(field_id) : fields_[static_cast<std::size_t>(offer.column)];
      if (!is_useful(field, offer)) continue;
      plan.take(offer, !is_text(field));
      taken.add(field, offer.comparison);
    }
    plan.set_mode(order_mode(plan, fields_, taken));
    if (taken.equal[field_id]) return plan.estimate(1, 1, true);

    // What is walked, and what share of it is returned.
    double walked = count_, share = 1;
    const auto ranks = static_cast<double>(std::max<std::size_t>(data_.trace().ranks.size(), 1));
    const auto tracks = static_cast<double>(std::max<std::size_t>(data_.tracks().size(), 1));
    const auto kinds = static_cast<double>(data_.trace().kinds.size());
    if (taken.equal[field_track]) {
      walked /= tracks;
    } else if (taken.equal[field_rank]) {
      walked /= ranks;
    }
    const bool from = taken.above[field_start] || taken.above[field_end],
               to = taken.below[field_start] || taken.below[field_end];
    if (taken.equal[field_start] || taken.equal[field_end]) {
      walked *= 1e-4;
    } else if (from && to) {
      walked *= 0.01;
    } else if (from || to) {
      walked *= 0.4;
    }
    if (taken.equal[field_kind] || taken.equal[field_name]) {
      share *= std::max(1 / kinds, 0.02);
    } else if (taken.equal[field_domain] || taken.equal[field_category] || taken.pattern[field_name]) {
      share *= 0.2;
    }
    if (taken.equal[field_depth]) share *= 0.3;
    if (taken.above[field_duration] || taken.below[field_duration] || taken.equal[field_duration]) share *= 0.3;
    plan.estimate(walked * share, 10 + walked * (0.02 + share));
  }
  std::unique_ptr<QueryCursor> open() override { return std::make_unique<EventCursor>(data_, fields_, marks_); }

 private:
  RunData& data_;
  const bool marks_;
  std::vector<QueryColumn> columns_;
  std::vector<int> fields_;  // by column: an EventField
  double count_ = 0;         // rows
};

}  // namespace event_plans

std::unique_ptr<QueryTable> slices_table(RunData& data) {
  return std::make_unique<event_plans::EventTable>(data, false);
}
std::unique_ptr<QueryTable> marks_table(RunData& data) { return std::make_unique<event_plans::EventTable>(data, true); }

}  // namespace paceline::analysis
