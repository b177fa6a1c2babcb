// SPDX-License-Identifier: Apache-2.0
// The table `counters`: the samples of all counters.
#include <algorithm>

#include "analysis/query/conditions.h"
#include "analysis/query/run_data.h"
#include "analysis/query/table.h"

namespace paceline::analysis {
namespace sample_tables {

enum Field : int {
  sample_rank,
  sample_track,
  sample_name,
  sample_device,
  sample_unit,
  sample_time,
  sample_value,
  sample_rate
};

constexpr QueryColumn sample_columns[] = {
    {"rank", "INTEGER", "", "rank of the process"},
    {"track", "INTEGER", "", "number of the counter's track (tracks.track)"},
    {"name", "TEXT", "", "name of the counter"},
    {"device", "TEXT", "", "'eth0', 'GPU 0', …, or ''"},
    {"unit", "TEXT", "", "unit of the values; '' for things that are counted"},
    {"time_ns", "INTEGER", "ns", "time of the sample, since the run's zero"},
    {"value", "REAL", "unit", "value; a sum counts from its first sample"},
    {"rate", "REAL", "unit/s",
     "of a sum, its rise each second until the next sample; NULL for levels and last samples"},
};

class SampleCursor : public QueryCursor {
 public:
  SampleCursor(RunData& data, const std::vector<TrackNumber>& counters) : data_(data), counters_(counters) {}

  void filter(int, std::span<const Condition> conditions) override {
    IntegerRange rank, track;
    time_ = {};
    std::vector<TextCondition> names;
    for (const Condition& condition : conditions) {
      if (condition.column == sample_rank) rank.limit(condition.comparison, condition.value);
      if (condition.column == sample_track) track.limit(condition.comparison, condition.value);
      if (condition.column == sample_time) time_.limit(condition.comparison, condition.value);
      if (condition.column == sample_name) names.emplace_back(condition.comparison, condition.value);
    }
    chosen_.clear();
    for (const TrackNumber number : counters_) {
      const RunData::TrackPlace& place = data_.tracks()[number];
      const auto fits = [&](const TextCondition& text) { return text.accepts(place.of->samples.name); };
      if (rank.contains(data_.trace().ranks[place.rank].rank) && track.contains(number) &&
          std::ranges::all_of(names, fits)) {
        chosen_.push_back(number);
      }
    }
    counter_ = 0;
    at_ = until_ = 0;
    at_end_ = time_.empty() || !enter();
  }
  void next() override {
    if (++at_ < until_) return;
    ++counter_;
    at_end_ = !enter();
  }
  void column(sqlite3_context* context, int column) override {
    const RunData::TrackPlace& place = data_.tracks()[chosen_[counter_]];
    const Samples& of = place.of->samples;
    switch (static_cast<Field>(column)) {
      case sample_rank:
        return sqlite3_result_int64(context, data_.trace().ranks[place.rank].rank);
      case sample_track:
        return sqlite3_result_int64(context, chosen_[counter_]);
      case sample_name:
        return give_text(context, of.name);
      case sample_device:
        return give_text(context, of.device);
      case sample_unit:
        return give_text(context, of.unit);
      case sample_time:
        return sqlite3_result_int64(context, of.time_ns[at_]);
      case sample_value:
        return sqlite3_result_double(context, of.value[at_]);
      case sample_rate:
        if (!of.is_sum || at_ + 1 >= of.size() || of.time_ns[at_ + 1] <= of.time_ns[at_]) return;
        // A sum that falls was reset.
        return sqlite3_result_double(context, std::max(0.0, of.value[at_ + 1] - of.value[at_]) * 1e9 /
                                                  static_cast<double>(of.time_ns[at_ + 1] - of.time_ns[at_]));
    }
  }
  std::int64_t row_id() const override { return slice_id(chosen_[counter_], static_cast<std::uint32_t>(at_)); }

 private:
  // Goes to the next counter that has a sample in the time, from this one on.
  bool enter() {
    for (; counter_ < chosen_.size(); ++counter_) {
      const auto& times = data_.tracks()[chosen_[counter_]].of->samples.time_ns;
      const auto begin = std::ranges::lower_bound(times, time_.low);
      const auto end = std::upper_bound(begin, times.end(), time_.high);
      at_ = static_cast<std::size_t>(begin - times.begin());
      until_ = static_cast<std::size_t>(end - times.begin());
      if (at_ < until_) return true;
    }
    return false;
  }

  RunData& data_;
  const std::vector<TrackNumber>& counters_;
  std::vector<TrackNumber> chosen_;
  IntegerRange time_;
  std::size_t counter_ = 0, at_ = 0, until_ = 0;
};

class SampleTable : public QueryTable {
 public:
  explicit SampleTable(RunData& data) : QueryTable("counters", "samples of counters over time"), data_(data) {
    for (TrackNumber number = 0; number < data.tracks().size(); ++number) {
      const std::size_t samples = data.tracks()[number].of->samples.size();
      if (samples > 0) counters_.push_back(number);
      count_ += static_cast<double>(samples);
    }
  }
  std::span<const QueryColumn> columns() const override { return sample_columns; }
  void plan(QueryPlan& plan) const override {
    double rows = count_;
    for (const QueryPlan::Offer& offer : plan.offers()) {
      const bool number = offer.column == sample_rank || offer.column == sample_track || offer.column == sample_time;
      if (number && is_range(offer.comparison)) {
        plan.take(offer, true);
        rows *= offer.comparison == Operator::equal ? 0.1 : 0.3;
      } else if (offer.column == sample_name &&
                 (offer.comparison == Operator::equal ? offer.binary : !is_range(offer.comparison))) {
        plan.take(offer, false);
        rows *= 0.1;
      }
    }
    plan.estimate(rows, 10 + rows);
  }
  std::unique_ptr<QueryCursor> open() override { return std::make_unique<SampleCursor>(data_, counters_); }

 private:
  RunData& data_;
  std::vector<TrackNumber> counters_;  // tracks with samples
  double count_ = 0;                   // samples
};

}  // namespace sample_tables

std::unique_ptr<QueryTable> counters_table(RunData& data) { return std::make_unique<sample_tables::SampleTable>(data); }

}  // namespace paceline::analysis
