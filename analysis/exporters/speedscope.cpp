// SPDX-License-Identifier: Apache-2.0
// The samples of stacks in speedscope's JSON format (https://www.speedscope.app/file-format-schema.json): a profile for
// each thread, whose samples have the time that they stand for as weight.
#include <map>
#include <utility>

#include "analysis/exporters/exporter.h"
#include "analysis/text/text_output.h"
#include "analysis/trace/stack_frames.h"

namespace paceline::analysis {
namespace {

class SpeedscopeWriter {
 public:
  SpeedscopeWriter(const ExportJob& job, std::FILE* file) : trace_(job.trace()), job_(job), out_(file) {}

  void write() {
    out_.text(R"({"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"paceline","profiles":[)");
    for (const Rank* rank : job_.ranks()) {
      for (const Track& track : rank->tracks) profile(*rank, track);
    }
    out_.text(R"(],"shared":{"frames":[)");
    std::vector<std::pair<NameId, NameId>> by_number(numbers_.size());
    for (const auto& [frame, number] : numbers_) by_number[number] = frame;
    const char* before = "\n";
    for (const auto& [function, file] : by_number) {
      out_.print("{}{{\"name\":{}", before, json_string(trace_.names[function]));
      if (file != 0) out_.print(",\"file\":{}", json_string(trace_.names[file]));
      out_.text("}");
      out_.line_done();
      before = ",\n";
    }
    out_.text("]}}\n");
    out_.flush();
  }

 private:
  // Functions are frames there, not their lines.
  std::size_t number(const Frame& frame) {
    return numbers_.try_emplace({frame.function, frame.file}, numbers_.size()).first->second;
  }

  void profile(const Rank& rank, const Track& track) {
    const StackSamples& samples = track.stacks;
    const TimeWindow& window = job_.selection().window();
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (window.holds(samples.time_ns[i])) chosen.push_back(i);
    }
    if (chosen.empty()) return;
    const std::int64_t weight = std::max<std::int64_t>(samples.period_ns, 1);
    out_.print(R"({}{{"type":"sampled","name":{},"unit":"nanoseconds","startValue":0,"endValue":{},"samples":[)",
               before_, json_string(process_name(rank) + ", " + track.label),
               weight * static_cast<std::int64_t>(chosen.size()));
    before_ = ",\n";
    for (const std::size_t i : chosen) {
      out_.text(i == chosen.front() ? "[" : ",\n[");
      const char* comma = "";
      for (const FrameId frame : frames_of(trace_.stacks, samples.stack[i])) {
        out_.print("{}{}", comma, number(trace_.stacks[frame]));
        comma = ",";
      }
      out_.text("]");
      out_.line_done();
    }
    out_.text(R"(],"weights":[)");
    for (const std::size_t i : chosen) out_.print("{}{}", i == chosen.front() ? "" : ",", weight);
    out_.text("]}");
    out_.line_done();
  }

  const Trace& trace_;
  const ExportJob& job_;
  TextOutput out_;
  std::map<std::pair<NameId, NameId>, std::size_t> numbers_;
  const char* before_ = "\n";
};

}  // namespace

constexpr Exporter speedscope_exporter{
    .name = "speedscope",
    .what = "samples of stacks, for speedscope.app",
    .target = Exporter::Target::stream,
    .write = [](const ExportJob& job, std::FILE* out) { SpeedscopeWriter(job, out).write(); }};

}  // namespace paceline::analysis
