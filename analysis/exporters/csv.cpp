#include "analysis/text/csv.h"
#include "analysis/exporters/export.h"
#include "analysis/exporters/text_output.h"

namespace paceline::analysis {
namespace {

class CsvWriter {
 public:
  CsvWriter(const Trace& trace, std::FILE* file)
      : trace_(trace), out_(file), json_(trace), fields_(trace.names.size()) {}

  void write() {
    out_.text("rank,host,pid,track,kind,name,category,start_ns,duration_ns,depth,args\n");
    for (const Rank& rank : trace_.ranks) {
      process(rank);
      for (const Track& track : rank.tracks) {
        before_ = fmt::format("{},{},{},{}", rank.rank, csv_field(rank.host), rank.pid, csv_field(track.label));
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
    const std::string arguments = fmt::format("{{\"main\":{},\"ended\":{}}}",
                                              main != nullptr ? json_string(main->label) : "\"\"", rank.ended ? 1 : 0);
    out_.print("{},process,{},,{},{},0,{}\n", before_,
               csv_field(rank.command.empty() ? std::string() : rank.command.front()), rank.start_ns,
               rank.end_ns - rank.start_ns, csv_field(arguments));
    out_.line_done();
    for (const Gap& gap : rank.gaps) {
      out_.print("{},gap,{},{},{},{},0,{}\n", before_, csv_field(gap.reason), gap.lost ? "lost" : "paused",
                 gap.start_ns, gap.end_ns - gap.start_ns, "");
      out_.line_done();
    }
    losses(rank.lost);
  }

  void losses(const std::vector<LostInterval>& stretches) {
    for (const LostInterval& loss : stretches) {
      const std::string arguments = fmt::format("{{\"events\":{}}}", loss.events);
      out_.print("{},lost,{},,{},{},0,{}\n", before_, csv_field(loss.cause), loss.start_ns, loss.end_ns - loss.start_ns,
                 csv_field(arguments));
      out_.line_done();
    }
  }

  const std::string& field(NameId name) {
    std::string& text = fields_[name];
    if (text.empty()) text = csv_field(trace_.names[name]);
    return text;
  }

  void lines(const Slices& slices, std::string_view what) {
    for (std::uint32_t i = 0; i < slices.size(); ++i) {
      const Kind& kind = trace_.kind_of(slices, i);
      arguments_.clear();
      append_json_arguments(arguments_, kind.domain, slices, i, json_);
      out_.print("{},{},{},{},{},{},{},{}\n", before_, what, field(kind.name), field(kind.category), slices.start_ns[i],
                 slices.duration_ns[i], slices.depth[i], csv_field(arguments_));
      out_.line_done();
    }
  }

  void samples(const Samples& samples) {
    const std::string unit = json_string(samples.unit);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::string arguments =
          fmt::format("{{\"value\":{},\"unit\":{},\"sum\":{}}}", samples.value[i], unit, samples.is_sum);
      out_.print("{},counter,{},,{},0,0,{}\n", before_, csv_field(samples.name), samples.time_ns[i],
                 csv_field(arguments));
      out_.line_done();
    }
  }

  const Trace& trace_;
  TextOutput out_;
  JsonNames json_;
  std::vector<std::string> fields_;  // names as CSV fields, each made once
  std::string before_, arguments_;
};

}  // namespace

void export_csv(const Trace& trace, std::FILE* out) { CsvWriter(trace, out).write(); }

}  // namespace paceline::analysis
