// SPDX-License-Identifier: Apache-2.0
// The tables of the runs as CSV files of their own, with all rows. Columns are named as the keys of the JSON.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/report/render.h"
#include "analysis/text/csv.h"
#include "analysis/text/labels.h"

namespace paceline::analysis {
namespace csv_tables {

std::string ranges(const RunAnalysis& run) {
  std::string out;
  for (const RankSummary& rank : run.per_rank) {
    for (const RangeStatistics& range : rank.ranges) {
      const DurationSketch& of = range.durations;
      out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(run.path), rank.rank,
                         csv_field(range.domain), csv_field(range.category), csv_field(range.name), of.count(),
                         of.sum_ns(), of.minimum_ns(), of.quantile_ns(0.5), of.maximum_ns(), of.stddev_ns(),
                         range.device.operations, range.device.work_ns, range.device.projected_ns);
    }
  }
  return out;
}

std::string collectives(const RunAnalysis& run) {
  std::string out;
  for (const CollectiveRow& row : run.collectives) {
    out += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", csv_field(run.path), csv_field(row.operation), row.bytes,
                       row.members, row.count, row.timed, row.wait_ns, row.transfer_ns,
                       row.busbw_bytes_per_s > 0 ? fmt::format("{}", row.algbw_bytes_per_s()) : "",
                       row.busbw_bytes_per_s > 0 ? fmt::format("{}", row.busbw_bytes_per_s) : "");
  }
  return out;
}

std::string messages(const RunAnalysis& run) {
  std::string out;
  if (!run.messages) return out;
  for (const MessagePair& pair : run.messages->pairs) {
    out += fmt::format("{},{},{},{},{},{},{},{}\n", csv_field(run.path), pair.sender, pair.receiver, pair.messages,
                       pair.matched, pair.bytes, pair.late_sender_ns, pair.late_receiver_ns);
  }
  return out;
}

// Those that all ranks finished, of each rank, with the warm-up.
std::string iterations(const RunAnalysis& run) {
  std::string out;
  const auto& numbers = run.iterations.numbers;
  for (const RankSummary& rank : run.per_rank) {
    for (const Iteration& iteration : rank.iterations) {
      const auto at = std::ranges::lower_bound(numbers, iteration.number);
      if (!iteration.finished || at == numbers.end() || *at != iteration.number) continue;
      const bool warm_up = at - numbers.begin() < static_cast<std::ptrdiff_t>(run.iterations.warmup);
      out += fmt::format("{},{},{},{},{},{}\n", csv_field(run.path), rank.rank, iteration.number, iteration.start_ns,
                         iteration.duration_ns, warm_up ? 1 : 0);
    }
  }
  return out;
}

struct File {
  const char *name, *header;
  std::string (*rows)(const RunAnalysis&);
};
constexpr File files[] = {
    {"report-ranges.csv",
     "run,rank,domain,category,name,calls,total_ns,min_ns,median_ns,max_ns,stddev_ns,device_operations,device_ns,"
     "projected_ns",
     ranges},
    {"report-collectives.csv",
     "run,operation,bytes,members,count,timed,wait_ns,transfer_ns,algbw_bytes_per_s,busbw_bytes_per_s", collectives},
    {"report-messages.csv", "run,sender,receiver,messages,matched,bytes,late_sender_ns,late_receiver_ns", messages},
    {"report-iterations.csv", "run,rank,iteration,start_ns,duration_ns,warmup", iterations}};

}  // namespace csv_tables

std::vector<CsvFile> render_csv_tables(const Report& report) {
  std::vector<CsvFile> out;
  for (const csv_tables::File& file : csv_tables::files) {
    std::string rows;
    for (const RunAnalysis& run : report.runs) rows += file.rows(run);
    if (!rows.empty()) out.push_back({file.name, std::string(file.header) + "\n" + printable_lines(rows)});
  }
  return out;
}

}  // namespace paceline::analysis
