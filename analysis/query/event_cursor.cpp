// SPDX-License-Identifier: Apache-2.0
#include "analysis/query/event_cursor.h"

#include <algorithm>

namespace paceline::analysis {
namespace event_cursor_parts {

constexpr std::size_t steps_between_checks = 1 << 20;
// After this many searches by kind a cursor makes the index by kind: it is the inner part of a join.
constexpr int scans_before_index = 3;

IntegerRange nothing() {
  IntegerRange range;
  range.low = 0, range.high = -1;
  return range;
}

// The positions of a track whose starts are in the range.
std::pair<std::size_t, std::size_t> within(const std::vector<std::int64_t>& starts, const IntegerRange& range) {
  const auto begin = range.has_low() ? std::ranges::lower_bound(starts, range.low) : starts.begin();
  const auto end = range.has_high() ? std::upper_bound(begin, starts.end(), range.high) : starts.end();
  return {begin - starts.begin(), end - starts.begin()};
}

}  // namespace event_cursor_parts

void EventCursor::filter(int mode, std::span<const Condition> conditions) {
  data_.check_interruption();
  stretches_.clear();
  heads_.clear();
  parents_of_ = nullptr;
  stretch_ = 0;
  at_ = until_ = 0;
  at_end_ = true;
  by_start_ = false;
  if (!read(conditions)) return;
  choose_kinds(conditions);
  add_stretches(mode);
  if ((mode & ((1 << order_bits) - 1)) == order_by_start) return start_merging();
  if (stretches_.empty()) return;
  at_end_ = false;
  enter(0);
  settle();
}

// False where nothing can satisfy the conditions.
bool EventCursor::read(std::span<const Condition> conditions) {
  id_ = rank_ = track_ = start_ = end_ = duration_ = depth_ = kind_ = {};
  for (const Condition& condition : conditions) {
    const int field =
        condition.column < 0 ? static_cast<int>(field_id) : fields_[static_cast<std::size_t>(condition.column)];
    IntegerRange* const ranges[] = {&id_, &rank_, &track_, &start_, &end_, &duration_, &depth_, &kind_};
    if (field <= field_kind) ranges[field]->limit(condition.comparison, condition.value);
  }
  // The id chooses its track.
  if (id_.limited() && !id_.empty()) {
    if (id_.low != id_.high || (id_.low < 0) != marks_) {
      id_ = event_cursor_parts::nothing();
    } else {
      track_.low = std::max<std::int64_t>(track_.low, place_of(id_.low).track);
      track_.high = std::min<std::int64_t>(track_.high, place_of(id_.low).track);
    }
  }
  for (const IntegerRange* range : {&id_, &rank_, &track_, &start_, &end_, &duration_, &depth_, &kind_}) {
    if (range->empty()) return false;
  }
  checks_other_ = end_.limited() || duration_.limited() || depth_.limited();
  return true;
}

void EventCursor::choose_kinds(std::span<const Condition> conditions) {
  const Trace& trace = data_.trace();
  wanted_.clear();
  if (kind_.limited()) {
    wanted_.assign(trace.kinds.size(), 0);
    for (std::size_t k = 0; k < wanted_.size(); ++k) wanted_[k] = kind_.contains(static_cast<std::int64_t>(k));
  }
  for (const Condition& condition : conditions) {
    if (condition.column < 0) continue;
    const int field = fields_[static_cast<std::size_t>(condition.column)];
    if (field != field_name && field != field_domain && field != field_category) continue;
    const TextCondition text(condition.comparison, condition.value);
    if (wanted_.empty()) wanted_.assign(trace.kinds.size(), 1);
    for (std::size_t k = 0; k < wanted_.size(); ++k) {
      const Kind& of = trace.kinds[static_cast<KindId>(k)];
      const NameId word = field == field_name ? of.name : field == field_domain ? of.domain : of.category;
      wanted_[k] = wanted_[k] != 0 && text.accepts(trace.names[word]);
    }
  }
}

void EventCursor::add_stretches(int mode) {
  const auto order = static_cast<EventOrder>(mode & ((1 << order_bits) - 1));
  bool by_kind = order == order_by_words;
  if (!wanted_.empty() && order == order_any && ++kind_filters_ > event_cursor_parts::scans_before_index)
    by_kind = true;
  const auto& ranks = data_.trace().ranks;
  for (std::uint32_t r = 0; r < ranks.size(); ++r) {
    if (!rank_.contains(ranks[r].rank)) continue;
    const std::int64_t first = std::max<std::int64_t>(data_.first_track(r), track_.low);
    const std::int64_t last = std::min<std::int64_t>(data_.first_track(r + 1) - std::int64_t{1}, track_.high);
    for (std::int64_t t = first; t <= last; ++t) add_track(static_cast<TrackNumber>(t), by_kind);
  }
  if (order == order_by_words) order_stretches(mode >> order_bits);
}

void EventCursor::add_track(TrackNumber track, bool by_kind) {
  const Slices& slices = slices_of(track);
  if (slices.size() == 0) return;
  IntegerRange starts = start_;
  if (end_.has_high()) starts.high = std::min(starts.high, end_.high);  // no slice ends before it starts
  auto [begin, end] = event_cursor_parts::within(slices.start_ns, starts);
  if (id_.limited()) {
    const std::size_t position = place_of(id_.low).position;
    begin = std::max(begin, position);
    end = std::min(end, position + 1);
  }
  if (begin >= end) return;
  if (!by_kind) {
    stretches_.push_back({track, nullptr, begin, end});
    return;
  }
  for (const TrackIndex::OfKind& of : data_.track_index(track, marks_).by_kind()) {
    if (!wanted_.empty() && wanted_[of.kind] == 0) continue;
    const auto from = std::ranges::lower_bound(of.slices, begin);
    const auto to = std::lower_bound(from, of.slices.end(), end);
    if (from == to) continue;
    stretches_.push_back({track, of.slices.data(), static_cast<std::size_t>(from - of.slices.begin()),
                          static_cast<std::size_t>(to - of.slices.begin())});
  }
}

// Sorts stretches, of one kind each, by the fields.
void EventCursor::order_stretches(int fields) {
  std::ranges::stable_sort(stretches_, [&](const Stretch& a, const Stretch& b) {
    for (int rest = fields; rest != 0; rest >>= field_bits) {
      const int order = compare(a, b, (rest & ((1 << field_bits) - 1)) - 1);
      if (order != 0) return order < 0;
    }
    return false;
  });
}

int EventCursor::compare(const Stretch& a, const Stretch& b, int field) const {
  const Trace& trace = data_.trace();
  const auto signed_order = [](auto left, auto right) { return left < right ? -1 : left > right ? 1 : 0; };
  const auto rank_of = [&](const Stretch& of) { return trace.ranks[data_.tracks()[of.track].rank].rank; };
  if (field == field_rank) return signed_order(rank_of(a), rank_of(b));
  if (field == field_track) return signed_order(a.track, b.track);
  const auto kind_of = [&](const Stretch& of) { return slices_of(of.track).kind[of.order[of.begin]]; };
  if (field == field_kind) return signed_order(kind_of(a), kind_of(b));
  const auto word_of = [&](const Stretch& of) {
    const Kind& words = trace.kinds[kind_of(of)];
    return field == field_name ? words.name : field == field_domain ? words.domain : words.category;
  };
  const NameId left = word_of(a), right = word_of(b);
  return left == right ? 0 : trace.names[left].compare(trace.names[right]);
}

void EventCursor::enter(std::size_t stretch) {
  stretch_ = stretch;
  const Stretch& of = stretches_[stretch];
  slices_ = &slices_of(of.track);
  order_ = of.order;
  at_ = of.begin;
  until_ = of.end;
}

// Goes on to the next row that is accepted, from this one on.
void EventCursor::settle() {
  for (;;) {
    if (!wanted_.empty() || checks_other_) at_ = find(stretches_[stretch_], at_);
    if (at_ < until_) return;
    if (stretch_ + 1 == stretches_.size()) {
      at_end_ = true;
      return;
    }
    enter(stretch_ + 1);
  }
}

bool EventCursor::accepted(std::size_t position) const {
  if (!wanted_.empty() && wanted_[slices_->kind[position]] == 0) return false;
  if (!checks_other_) return true;
  return depth_.contains(slices_->depth[position]) && duration_.contains(slices_->duration_ns[position]) &&
         end_.contains(slices_->end_ns(position));
}

// The first row of the stretch from `from` on that is accepted; its end if there is none. slices_ is the stretch's.
std::size_t EventCursor::find(const Stretch& stretch, std::size_t from) {
  if (stretch.order != nullptr) {  // of one kind that is wanted
    while (from < stretch.end && !accepted(stretch.order[from])) ++from;
    return from;
  }
  while (from < stretch.end) {
    const std::size_t stop = std::min(stretch.end, from + event_cursor_parts::steps_between_checks);
    if (!checks_other_) {
      const KindId* kinds = slices_->kind.data();
      while (from < stop && wanted_[kinds[from]] == 0) ++from;
    } else if (end_.has_low()) {
      TrackIndex& index = data_.track_index(stretch.track, marks_);
      while (from < stop && !accepted(from)) from = index.next_ending(from + 1, end_.low);
    } else {
      while (from < stop && !accepted(from)) ++from;
    }
    if (from < stop) return from;
    data_.check_interruption();
  }
  return std::min(from, stretch.end);
}

void EventCursor::start_merging() {
  by_start_ = true;
  for (std::size_t s = 0; s < stretches_.size(); ++s) {
    enter(s);
    const std::size_t first = wanted_.empty() && !checks_other_ ? at_ : find(stretches_[s], at_);
    if (first < until_) heads_.push_back({slices_->start_ns[first], s, first});
  }
  const auto later = [](const Head& a, const Head& b) { return a.start_ns > b.start_ns; };
  std::ranges::make_heap(heads_, later);
  at_end_ = heads_.empty();
  if (at_end_) return;
  enter(heads_.front().stretch);
  at_ = heads_.front().at;
}

void EventCursor::next_merged() {
  const auto later = [](const Head& a, const Head& b) { return a.start_ns > b.start_ns; };
  std::ranges::pop_heap(heads_, later);
  Head& head = heads_.back();
  const Stretch& stretch = stretches_[head.stretch];
  head.at = wanted_.empty() && !checks_other_ ? head.at + 1 : find(stretch, head.at + 1);
  if (head.at < stretch.end) {
    head.start_ns = slices_->start_ns[head.at];
    std::ranges::push_heap(heads_, later);
  } else {
    heads_.pop_back();
  }
  at_end_ = heads_.empty();
  if (at_end_) return;
  if (heads_.front().stretch != stretch_) enter(heads_.front().stretch);
  at_ = heads_.front().at;
}

std::int64_t EventCursor::row_id() const {
  const TrackNumber of = stretches_[stretch_].track;
  return marks_ ? mark_id(of, position()) : slice_id(of, position());
}

// The slice around another one is the last one before it that is one level up. Rows come mostly in their order, so the
// walk back ends at a slice whose parent was found before.
std::optional<std::int64_t> EventCursor::parent_of(std::uint32_t at) {
  if (parents_of_ != slices_) {
    parents_of_ = slices_;
    parents_.clear();
  }
  const std::uint16_t level = slices_->depth[at];
  if (level == 0) return std::nullopt;
  if (parents_.size() <= level) parents_.resize(std::size_t{level} + 1);
  std::optional<Found>& latest = parents_[level];
  std::optional<std::uint32_t> found;
  for (std::uint32_t before = at; before-- > 0;) {
    if (slices_->depth[before] < level) {
      found = before;
      break;
    }
    if (latest && latest->position == before) {
      found = latest->parent;
      break;
    }
  }
  latest = Found{at, found};
  if (!found) return std::nullopt;
  return slice_id(stretches_[stretch_].track, *found);
}

std::int64_t EventCursor::self_ns(std::uint32_t at) const {
  const std::uint16_t level = slices_->depth[at];
  std::int64_t ns = slices_->duration_ns[at];
  for (std::size_t inside = std::size_t{at} + 1; inside < slices_->size() && slices_->depth[inside] > level; ++inside) {
    if (slices_->depth[inside] == level + 1) ns -= slices_->duration_ns[inside];
  }
  return ns;
}

void EventCursor::column(sqlite3_context* context, int column) {
  const std::uint32_t at = position();
  const auto words = [&]() -> const Kind& { return data_.trace().kinds[slices_->kind[at]]; };
  const auto text = [&](NameId word) { give_text(context, data_.trace().names[word]); };
  const auto integer = [&](std::int64_t value) { sqlite3_result_int64(context, value); };
  switch (static_cast<EventField>(fields_[static_cast<std::size_t>(column)])) {
    case field_id:
      return integer(row_id());
    case field_rank:
      return integer(data_.trace().ranks[data_.tracks()[stretches_[stretch_].track].rank].rank);
    case field_track:
      return integer(stretches_[stretch_].track);
    case field_start:
      return integer(slices_->start_ns[at]);
    case field_end:
      return integer(slices_->end_ns(at));
    case field_duration:
      return integer(slices_->duration_ns[at]);
    case field_depth:
      return integer(slices_->depth[at]);
    case field_kind:
      return integer(slices_->kind[at]);
    case field_name:
      return text(words().name);
    case field_domain:
      return text(words().domain);
    case field_category:
      return text(words().category);
    case field_parent:
      if (const auto found = parent_of(at)) integer(*found);
      return;
    case field_self:
      return integer(self_ns(at));
  }
}

}  // namespace paceline::analysis
