// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/otf2/local_definitions.h"

#include <algorithm>
#include <cmath>

#include "analysis/importers/otf2/definitions.h"

namespace paceline::analysis {

Otf2LocalDefinitions::Otf2LocalDefinitions(const std::filesystem::path& file, std::uint64_t chunk_bytes) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return;
  constexpr std::uint8_t mapping_table = 5, clock_offset = 6;
  complete_ = each_otf2_definition(file, chunk_bytes, [&](std::uint8_t type, Otf2Bytes& from) {
    if (type == mapping_table) add_table(from);
    if (type == clock_offset) add_offset(from);
  });
  for (Table& table : tables_)
    std::ranges::stable_sort(table.sparse, {}, &std::pair<std::uint32_t, std::uint32_t>::first);
}

void Otf2LocalDefinitions::add_table(Otf2Bytes& from) {
  const std::uint8_t what = from.byte();
  const std::uint64_t count = from.number();
  const bool is_dense = from.byte() == OTF2_ID_MAP_DENSE;
  if (what >= OTF2_MAPPING_MAX) return;
  Table table;
  for (std::uint64_t i = 0; i < count && !from.failed(); ++i) {
    const std::uint32_t first = from.number32();
    if (is_dense) {
      table.dense.push_back(first);
    } else {
      table.sparse.emplace_back(first, from.number32());
    }
  }
  if (!from.failed()) tables_[what] = std::move(table);
}

void Otf2LocalDefinitions::add_offset(Otf2Bytes& from) {
  const OTF2_TimeStamp time = from.fixed(8);
  const auto offset = static_cast<std::int64_t>(from.number());
  if (from.failed() || (has_offset_ && time <= latest_.begin)) return;
  if (has_offset_) {
    latest_.end = time;
    const auto change = static_cast<std::uint64_t>(offset) - static_cast<std::uint64_t>(latest_.offset);
    latest_.slope = static_cast<double>(static_cast<std::int64_t>(change)) / static_cast<double>(time - latest_.begin);
    intervals_.push_back(latest_);
  }
  has_offset_ = true;
  latest_ = {.begin = time, .end = 0, .offset = offset, .slope = 0};
}

std::uint32_t Otf2LocalDefinitions::sparse(const Table& table, std::uint32_t id) {
  const auto found = std::ranges::lower_bound(table.sparse, id, {}, &std::pair<std::uint32_t, std::uint32_t>::first);
  return found != table.sparse.end() && found->first == id ? found->second : id;
}

// Before the first interval and behind the last one, the nearest interval holds.
OTF2_TimeStamp Otf2LocalDefinitions::corrected(OTF2_TimeStamp local) {
  while (interval_ + 1 < intervals_.size() && local > intervals_[interval_].end) ++interval_;
  const Interval& interval = intervals_[interval_];
  const double passed = local >= interval.begin ? static_cast<double>(local - interval.begin)
                                                : -static_cast<double>(interval.begin - local);
  const double change = std::rint(interval.slope * passed);
  constexpr double bound = 4e18;
  return local + static_cast<std::uint64_t>(interval.offset) +
         static_cast<std::uint64_t>(static_cast<std::int64_t>(std::clamp(change, -bound, bound)));
}

}  // namespace paceline::analysis
