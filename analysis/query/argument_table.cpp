// SPDX-License-Identifier: Apache-2.0
#include "analysis/query/argument_table.h"

#include <algorithm>
#include <string>

#include "analysis/query/conditions.h"

namespace paceline::analysis {

void give_argument(sqlite3_context* context, const Names& names, const Argument& argument) {
  switch (argument.type) {
    case ValueType::text:
      return give_text(context, names[argument.text()]);
    case ValueType::real:
      return sqlite3_result_double(context, argument.number());
    case ValueType::signed_integer:
      return sqlite3_result_int64(context, static_cast<std::int64_t>(argument.bits));
    case ValueType::unsigned_integer:
      break;
  }
  if (argument.bits >> 63 == 0) return sqlite3_result_int64(context, static_cast<std::int64_t>(argument.bits));
  const std::string digits = std::to_string(argument.bits);
  sqlite3_result_text(context, digits.c_str(), static_cast<int>(digits.size()), SQLITE_TRANSIENT);
}

const Slices* find_event(const RunData& data, std::int64_t id, std::uint32_t& position) {
  const EventPlace place = place_of(id);
  if (place.track >= data.tracks().size()) return nullptr;
  const Track& track = *data.tracks()[place.track].of;
  const Slices& events = place.is_mark ? track.marks : track.slices;
  position = place.position;
  return position < events.size() ? &events : nullptr;
}

namespace argument_tables {

enum Field : int { argument_id, argument_key, argument_value };

constexpr QueryColumn argument_columns[] = {
    {"id", "INTEGER", "", "slice or mark that it belongs to (slices.id, marks.id)"},
    {"key", "TEXT", "", "'bytes', 'communicator', 'peer', 'tag', 'payload', 'correlation', …"},
    {"value", "", "", "integer, real or text; integers above 2^63 - 1 are text"},
};

class ArgumentCursor : public QueryCursor {
 public:
  explicit ArgumentCursor(RunData& data) : data_(data) {}

  void filter(int, std::span<const Condition> conditions) override {
    IntegerRange id;
    keys_.clear();
    for (const Condition& condition : conditions) {
      if (condition.column == argument_id) id.limit(condition.comparison, condition.value);
      if (condition.column == argument_key) keys_.emplace_back(condition.comparison, condition.value);
    }
    list_ = 0;
    at_ = until_ = 0;
    only_one_ = id.limited();
    found_.clear();
    next_ = 0;
    if (only_one_) {
      std::uint32_t position = 0;
      slices_ = id.low == id.high ? find_event(data_, id.low, position) : nullptr;
      id_ = id.low;
      if (slices_ != nullptr) collect(position);
      at_end_ = found_.empty();
      return;
    }
    slices_ = nullptr;
    at_end_ = !advance();
  }
  void next() override {
    if (++next_ < found_.size()) return;
    at_end_ = only_one_ || !advance();
  }
  void column(sqlite3_context* context, int column) override {
    const Argument& argument = found_[next_];
    switch (static_cast<Field>(column)) {
      case argument_id:
        return sqlite3_result_int64(context, id_);
      case argument_key:
        return give_text(context, data_.trace().names[argument.key]);
      case argument_value:
        return give_argument(context, data_.trace().names, argument);
    }
  }
  // Unique while a statement runs, which is all that SQLite needs, for up to 1,024 arguments.
  std::int64_t row_id() const override { return id_ * 1024 + static_cast<std::int64_t>(next_); }

 private:
  void collect(std::uint32_t position) {
    found_.clear();
    next_ = 0;
    if (slices_->record[position] == 0) return;
    slices_->each_argument(position, [&](const Argument& argument) {
      const auto fits = [&](const TextCondition& key) { return key.accepts(data_.trace().names[argument.key]); };
      if (std::ranges::all_of(keys_, fits)) found_.push_back(argument);
    });
  }

  // Goes to the next event with arguments that fit: the slices of each track, then its marks.
  bool advance() {
    for (;;) {
      for (; at_ < until_; ++at_) {
        if ((at_ & 0xfffff) == 0) data_.check_interruption();
        const auto position = static_cast<std::uint32_t>(at_);
        collect(position);
        if (found_.empty()) continue;
        id_ = marks_ ? mark_id(track_, position) : slice_id(track_, position);
        ++at_;
        return true;
      }
      if (list_ == 2 * data_.tracks().size()) return false;
      track_ = static_cast<TrackNumber>(list_ / 2);
      marks_ = list_ % 2 != 0;
      const Track& of = *data_.tracks()[track_].of;
      slices_ = marks_ ? &of.marks : &of.slices;
      at_ = 0;
      until_ = slices_->size();
      ++list_;
    }
  }

  RunData& data_;
  std::vector<TextCondition> keys_;
  const Slices* slices_ = nullptr;
  std::size_t list_ = 0, at_ = 0, until_ = 0;
  TrackNumber track_ = 0;
  bool marks_ = false, only_one_ = false;
  std::int64_t id_ = 0;
  std::vector<Argument> found_;  // of the present event
  std::size_t next_ = 0;
};

class ArgumentTable : public QueryTable {
 public:
  explicit ArgumentTable(RunData& data) : QueryTable("arguments", "arguments of slices and marks"), data_(data) {
    for (const auto& place : data.tracks()) {
      count_ += static_cast<double>(place.of->slices.size() + place.of->marks.size());
    }
  }
  std::span<const QueryColumn> columns() const override { return argument_columns; }
  void plan(QueryPlan& plan) const override {
    bool one = false, some_keys = false;
    for (const QueryPlan::Offer& offer : plan.offers()) {
      if (offer.column == argument_id && offer.comparison == Operator::equal) {
        plan.take(offer, true);
        one = true;
      } else if (offer.column == argument_key &&
                 (offer.comparison == Operator::equal ? offer.binary : !is_range(offer.comparison))) {
        plan.take(offer, false);
        some_keys = true;
      }
    }
    if (one) return plan.estimate(some_keys ? 1 : 4, 4);
    plan.estimate(count_ * (some_keys ? 0.3 : 2), 10 + count_ * 2);
  }
  std::unique_ptr<QueryCursor> open() override { return std::make_unique<ArgumentCursor>(data_); }

 private:
  RunData& data_;
  double count_ = 0;  // slices and marks
};

}  // namespace argument_tables

std::unique_ptr<QueryTable> arguments_table(RunData& data) {
  return std::make_unique<argument_tables::ArgumentTable>(data);
}

}  // namespace paceline::analysis
