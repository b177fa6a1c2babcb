// SPDX-License-Identifier: Apache-2.0
// What the events of one location need to be read: the numbers of its definitions in the archive, and its clock.
#pragma once

#include <otf2/otf2.h>

#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "analysis/importers/otf2/bytes.h"

namespace paceline::analysis {

class Otf2LocalDefinitions {
 public:
  // Reads the location's own file of definitions. A location needs none.
  Otf2LocalDefinitions(const std::filesystem::path& file, std::uint64_t chunk_bytes);

  // False where the file is damaged.
  bool complete() const { return complete_; }

  // The archive's number of what the location's events call `id`.
  std::uint32_t global(OTF2_MappingType what, std::uint32_t id) const {
    const Table& table = tables_[what];
    if (id < table.dense.size()) return table.dense[id];
    return table.sparse.empty() ? id : sparse(table, id);
  }
  // The time by the archive's clock of a time by the location's. Times come in their order.
  OTF2_TimeStamp time(OTF2_TimeStamp local) { return intervals_.empty() ? local : corrected(local); }

 private:
  struct Table {
    std::vector<std::uint32_t> dense;                             // by the location's number
    std::vector<std::pair<std::uint32_t, std::uint32_t>> sparse;  // sorted by the location's number
  };
  struct Interval {  // between two measurements of the clock's offset
    OTF2_TimeStamp begin = 0, end = 0;
    std::int64_t offset = 0;  // at the begin, in ticks
    double slope = 0;         // ticks of offset per tick
  };

  void add_table(Otf2Bytes& from);
  void add_offset(Otf2Bytes& from);
  static std::uint32_t sparse(const Table& table, std::uint32_t id);
  OTF2_TimeStamp corrected(OTF2_TimeStamp local);

  bool complete_ = true, has_offset_ = false;
  Interval latest_{};  // begins at the latest measurement
  Table tables_[OTF2_MAPPING_MAX];
  std::vector<Interval> intervals_;
  std::size_t interval_ = 0;  // of the latest time
};

}  // namespace paceline::analysis
