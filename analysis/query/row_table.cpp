// SPDX-License-Identifier: Apache-2.0
#include "analysis/query/row_table.h"

#include <algorithm>

#include "analysis/query/conditions.h"

namespace paceline::analysis {

class RowCursor : public QueryCursor {
 public:
  explicit RowCursor(RowTable& table) : table_(table) {}

  // The mode is the column that the conditions are on, or -1.
  void filter(int mode, std::span<const Condition> conditions) override {
    begin_ = 0;
    end_ = table_.count_();
    order_ = nullptr;
    IntegerRange range;
    for (const Condition& condition : conditions) range.limit(condition.comparison, condition.value);
    if (range.empty()) end_ = 0;
    if (mode >= 0 && end_ > 0) narrow(static_cast<std::size_t>(mode), range);
    at_end_ = begin_ >= end_;
  }
  void next() override { at_end_ = ++begin_ >= end_; }
  void column(sqlite3_context* context, int column) override {
    const QueryCell cell = table_.columns_[static_cast<std::size_t>(column)].cell(row());
    if (const auto* integer = std::get_if<std::int64_t>(&cell)) {
      sqlite3_result_int64(context, *integer);
    } else if (const auto* real = std::get_if<double>(&cell)) {
      sqlite3_result_double(context, *real);
    } else if (const auto* text = std::get_if<std::string_view>(&cell)) {
      give_text(context, *text);
    }
  }
  std::int64_t row_id() const override { return static_cast<std::int64_t>(row()); }

 private:
  std::size_t row() const { return order_ != nullptr ? (*order_)[begin_] : begin_; }

  void narrow(std::size_t column, const IntegerRange& range) {
    const RowColumn& of = table_.columns_[column];
    if (of.lookup == Lookup::index) {
      order_ = &table_.index(column);
      end_ = order_->size();
    }
    const auto value = [&](std::size_t place) {
      return std::get<std::int64_t>(of.cell(order_ != nullptr ? (*order_)[place] : place));
    };
    const auto first_above = [&](auto&& is_below) {
      std::size_t low = begin_, high = end_;
      while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (is_below(value(middle))) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      return low;
    };
    const std::size_t from = first_above([&](std::int64_t v) { return v < range.low; });
    const std::size_t to = first_above([&](std::int64_t v) { return v <= range.high; });
    begin_ = from;
    end_ = to;
  }

  RowTable& table_;
  const std::vector<std::uint32_t>* order_ = nullptr;
  std::size_t begin_ = 0, end_ = 0;
};

RowTable::RowTable(const char* name, const char* meaning, std::vector<RowColumn> columns,
                   std::function<std::size_t()> count, double estimate)
    : QueryTable(name, meaning),
      columns_(std::move(columns)),
      count_(std::move(count)),
      estimate_(std::max(estimate, 1.0)),
      indexes_(columns_.size()) {
  for (const RowColumn& column : columns_) about_.push_back(column.about);
}

const std::vector<std::uint32_t>& RowTable::index(std::size_t column) {
  std::vector<std::uint32_t>& index = indexes_[column];
  if (!index.empty()) return index;
  const auto value = [&](std::uint32_t row) { return std::get<std::int64_t>(columns_[column].cell(row)); };
  const std::size_t rows = count_();
  for (std::uint32_t row = 0; row < rows; ++row) {
    if (std::holds_alternative<std::int64_t>(columns_[column].cell(row))) index.push_back(row);
  }
  std::ranges::stable_sort(index, {}, value);
  return index;
}

// One column finds the rows: of those with conditions the one that leaves the fewest.
void RowTable::plan(QueryPlan& plan) const {
  const auto offers = plan.offers();
  int best = -1;
  double best_rows = estimate_;
  for (const QueryPlan::Offer& offer : offers) {
    if (offer.column < 0 || !is_range(offer.comparison)) continue;
    const RowColumn& column = columns_[static_cast<std::size_t>(offer.column)];
    if (column.lookup == Lookup::none) continue;
    const double rows = offer.comparison == Operator::equal
                            ? std::max(1.0, 1 / std::max(column.different, 1 / estimate_))
                            : estimate_ * 0.2;
    if (best >= 0 && rows >= best_rows) continue;
    best = offer.column;
    best_rows = std::min(rows, estimate_);
  }
  for (const QueryPlan::Offer& offer : offers) {
    if (offer.column == best && best >= 0 && is_range(offer.comparison)) plan.take(offer, true);
  }
  plan.set_mode(best);
  plan.estimate(best_rows, best_rows + (best >= 0 ? 10 : 1));
}

std::unique_ptr<QueryCursor> RowTable::open() { return std::make_unique<RowCursor>(*this); }

}  // namespace paceline::analysis
