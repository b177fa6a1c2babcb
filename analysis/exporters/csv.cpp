// SPDX-License-Identifier: Apache-2.0
// One line for each slice, mark and sample, with the header
//   rank,host,pid,track,kind,name,category,start_ns,duration_ns,depth,args
// quoted after RFC 4180. `kind` is "slice", "mark" or "counter"; of a rank "process" (its whole time), "gap" (a time
// that was not recorded) and "lost" (a time of which events are missing). `args` is a JSON object, with the NVTX domain
// under "domain"; of a sample it has "value", "unit" and "sum" (true: a sum since the first sample).
#include "analysis/text/csv.h"
#include "analysis/exporters/exporter.h"
#include "analysis/exporters/json_arguments.h"
#include "analysis/text/text_output.h"

namespace paceline::analysis {
namespace {

std::string name_as_csv_field(std::string_view name) { return csv_field(name); }

class CsvWriter {
 public:
  CsvWriter(const ExportJob& job, std::FILE* file)
      : job_(job), out_(file), arguments_(job.trace()), fields_(job.trace()) {}

  void write() {
    out_.text("rank,host,pid,track,kind,name,category,start_ns,duration_ns,depth,args\n");
    for (const Rank* rank : job_.ranks()) {
      process(*rank);
      for (const Track& track : rank->tracks) {
        before_ = fmt::format("{},{},{},{}", rank->rank, csv_field(rank->host), rank->pid, csv_field(track.label));
        lines(track.slices, "slice");
        lines(track.marks, "mark");
        losses(track.lost);
        samples(track.samples);
      }
    }
    out_.flush();
  }

 private:
  // The rank's whole time and what of it was not recorded, without which phases cannot be computed from the slices.
  void process(const Rank& rank) {
    before_ = fmt::format("{},{},{},", rank.rank, csv_field(rank.host), rank.pid);
    const Track* main = main_track(rank);
    const std::string command = rank.command.empty() ? std::string() : rank.command.front();
    const std::string arguments = fmt::format("{{\"main\":{},\"ended\":{}}}",
                                              main != nullptr ? json_string(main->label) : "\"\"", rank.ended ? 1 : 0);
    stretch("process", command, "", rank.start_ns, rank.end_ns, arguments);
    for (const Gap& gap : rank.gaps) {
      stretch("gap", gap.reason, gap.lost ? "lost" : "paused", gap.start_ns, gap.end_ns, "");
    }
    losses(rank.lost);
  }

  void losses(const std::vector<LostInterval>& all) {
    for (const LostInterval& loss : all) {
      stretch("lost", loss.cause, "", loss.start_ns, loss.end_ns, fmt::format("{{\"events\":{}}}", loss.events));
    }
  }

  void stretch(std::string_view kind, std::string_view name, std::string_view category, std::int64_t start_ns,
               std::int64_t end_ns, std::string_view arguments) {
    const auto part = job_.selection().clipped(start_ns, end_ns);
    if (!part) return;
    out_.print("{},{},{},{},{},{},0,{}\n", before_, kind, csv_field(name), category, part->from_ns,
               part->until_ns - part->from_ns, csv_field(arguments));
    out_.line_done();
  }

  void lines(const Slices& slices, std::string_view what) {
    job_.each(slices, [&](const SelectedSlice& slice) {
      const Kind& kind = job_.trace().kind_of(slices, slice.index);
      for (const std::string_view text : {std::string_view(before_), what, std::string_view(fields_[kind.name]),
                                          std::string_view(fields_[kind.category])}) {
        out_.text(text);
        out_.text(",");
      }
      for (const std::int64_t number : {slice.start_ns, slice.duration_ns, std::int64_t{slices.depth[slice.index]}}) {
        out_.number(number);
        out_.text(",");
      }
      out_.text(csv_field(arguments_(slices, slice)));
      out_.text("\n");
      out_.line_done();
    });
  }

  void samples(const Samples& samples) {
    const std::string unit = json_string(samples.unit);
    const auto [first, last] = job_.selection().samples(samples.time_ns);
    for (std::size_t i = first; i < last; ++i) {
      const std::string arguments =
          fmt::format("{{\"value\":{},\"unit\":{},\"sum\":{}}}", samples.value[i], unit, samples.is_sum);
      out_.print("{},counter,{},,{},0,0,{}\n", before_, csv_field(samples.name), samples.time_ns[i],
                 csv_field(arguments));
      out_.line_done();
    }
  }

  const ExportJob& job_;
  TextOutput out_;
  JsonArguments arguments_;
  NameTexts<name_as_csv_field> fields_;
  std::string before_;
};

}  // namespace

constexpr Exporter csv_exporter{.name = "csv",
                                .what = "one line for each slice, mark and sample",
                                .target = Exporter::Target::stream,
                                .write = [](const ExportJob& job, std::FILE* out) { CsvWriter(job, out).write(); }};

}  // namespace paceline::analysis
