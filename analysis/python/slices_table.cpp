// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "analysis/python/run_tables.h"
#include "analysis/text/text_output.h"
#include "analysis/trace/slice_id.h"

namespace paceline::python {
namespace {

using analysis::Rank;
using analysis::Track;

const std::vector<Field>& slice_fields() {
  static const std::vector<Field> fields{
      {"id", ColumnType::int64},        {"rank", ColumnType::int64},          {"track", ColumnType::int64},
      {"name", ColumnType::dictionary}, {"category", ColumnType::dictionary}, {"domain", ColumnType::dictionary},
      {"start_ns", ColumnType::int64},  {"duration_ns", ColumnType::int64},   {"depth", ColumnType::uint16},
      {"kind", ColumnType::uint32}};
  return fields;
}

class SliceBatches : public BatchSource {
 public:
  explicit SliceBatches(std::shared_ptr<const LoadedRun> run) : run_(std::move(run)) {}

  const std::vector<Field>& fields() const override { return slice_fields(); }

  std::optional<Batch> next() override {
    const auto& ranks = run_->trace().ranks;
    for (; rank_ < ranks.size(); ++rank_, track_ = 0) {
      while (track_ < ranks[rank_].tracks.size()) {
        const Track& track = ranks[rank_].tracks[track_++];
        const analysis::TrackNumber number = number_++;
        if (track.slices.size() > 0) return batch(ranks[rank_], track, number);
      }
    }
    return std::nullopt;
  }

 private:
  template <class Value, class Make>
  static ColumnValues computed(std::size_t rows, Make&& make) {
    auto values = std::make_shared<std::vector<Value>>(rows);
    for (std::size_t i = 0; i < rows; ++i) (*values)[i] = make(i);
    ColumnValues column;
    column.values = values->data();
    column.owner = std::move(values);
    return column;
  }
  template <class Value>
  ColumnValues own(const std::vector<Value>& values) const {  // nothing is copied
    ColumnValues column;
    column.owner = run_;
    column.values = values.data();
    return column;
  }
  static ColumnValues words(const LoadedRun::Words& words, const std::vector<analysis::KindId>& kinds) {
    ColumnValues column = computed<std::int32_t>(kinds.size(), [&](std::size_t i) { return words.of_kind[kinds[i]]; });
    column.dictionary = words.texts;
    return column;
  }

  Batch batch(const Rank& rank, const Track& track, analysis::TrackNumber number) const {
    const analysis::Slices& slices = track.slices;
    const std::size_t rows = slices.size();
    Batch made;
    made.rows = static_cast<std::int64_t>(rows);
    made.columns = {computed<std::int64_t>(
                        rows, [&](std::size_t i) { return analysis::slice_id(number, static_cast<std::uint32_t>(i)); }),
                    computed<std::int64_t>(rows, [&](std::size_t) { return rank.rank; }),
                    computed<std::int64_t>(rows, [&](std::size_t) { return number; }),
                    words(run_->names(), slices.kind),
                    words(run_->categories(), slices.kind),
                    words(run_->domains(), slices.kind),
                    own(slices.start_ns),
                    own(slices.duration_ns),
                    own(slices.depth),
                    own(slices.kind)};
    return made;
  }

  std::shared_ptr<const LoadedRun> run_;
  std::size_t rank_ = 0, track_ = 0;
  analysis::TrackNumber number_ = 0;
};

}  // namespace

LoadedRun::LoadedRun(analysis::Trace trace, std::string path) : trace_(std::move(trace)), path_(std::move(path)) {
  names_ = words(&analysis::Kind::name);
  categories_ = words(&analysis::Kind::category);
  domains_ = words(&analysis::Kind::domain);
}

LoadedRun::Words LoadedRun::words(analysis::NameId analysis::Kind::*part) const {
  Words made;
  std::map<std::string, std::int32_t> numbers;
  for (const analysis::Kind& kind : trace_.kinds) {
    const auto [found, fresh] =
        numbers.try_emplace(analysis::valid_utf8(trace_.names[kind.*part]), static_cast<std::int32_t>(numbers.size()));
    if (fresh) made.texts->add(found->first);
    made.of_kind.push_back(found->second);
  }
  return made;
}

Table slices_table(std::shared_ptr<const LoadedRun> run) {
  Table table{.fields = slice_fields(), .rows = 0, .open = {}};
  for (const Rank& rank : run->trace().ranks) {
    for (const Track& track : rank.tracks) table.rows += static_cast<std::int64_t>(track.slices.size());
  }
  table.open = [run = std::move(run)] { return std::make_unique<SliceBatches>(run); };
  return table;
}

}  // namespace paceline::python
