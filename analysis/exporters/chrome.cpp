#include <cstdlib>

#include "analysis/exporters/export.h"
#include "analysis/exporters/text_output.h"
#include "analysis/metrics/counters.h"

namespace paceline::analysis {
namespace {

std::string microseconds(std::int64_t ns) {
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", std::abs(ns / 1000), std::abs(ns % 1000));
}

class ChromeWriter {
 public:
  ChromeWriter(const Trace& trace, std::FILE* file) : trace_(trace), out_(file), names_(trace) {}

  void write() {
    out_.text("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    for (const Rank& rank : trace_.ranks) {
      metadata("process_name", rank.rank, 0, json_string(fmt::format("rank {} ({})", rank.rank, rank.host)));
      metadata("process_sort_index", rank.rank, 0, std::to_string(rank.rank));
      int thread = 0;
      for (const Track& track : rank.tracks) {
        if (track.kind == TrackKind::counter) {
          counter(rank.rank, track);
          continue;
        }
        ++thread;
        metadata("thread_name", rank.rank, thread, json_string(track.label));
        metadata("thread_sort_index", rank.rank, thread, std::to_string(thread));
        events(rank.rank, thread, track);
      }
    }
    out_.text("\n]}\n");
    out_.flush();
  }

 private:
  void begin() {
    out_.text(first_ ? "\n" : ",\n");
    first_ = false;
  }

  void metadata(const char* what, int process, int thread, const std::string& value) {
    begin();
    const bool sort = std::string_view(what).ends_with("sort_index");
    out_.print("{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"{}\",\"args\":{{\"{}\":{}}}}}", process, thread, what,
               sort ? "sort_index" : "name", value);
  }

  void events(int process, int thread, const Track& track) {
    for (std::uint32_t i = 0; i < track.slices.size(); ++i) {
      begin();
      out_.print("{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{}", process, thread,
                 microseconds(track.slices.start_ns[i]), microseconds(track.slices.duration_ns[i]));
      rest(track.slices, i);
    }
    for (std::uint32_t i = 0; i < track.marks.size(); ++i) {
      begin();
      out_.print("{{\"ph\":\"i\",\"s\":\"t\",\"pid\":{},\"tid\":{},\"ts\":{}", process, thread,
                 microseconds(track.marks.start_ns[i]));
      rest(track.marks, i);
    }
  }

  // These tools draw what they are given as it is: so a sum is given as what it rose by per second.
  void counter(int process, const Track& track) {
    const CounterCurve curve = curve_of(track.samples);
    const std::string name = json_string(track.label), unit = json_string(curve.unit.empty() ? "value" : curve.unit);
    for (std::size_t i = 0; i < curve.value.size(); ++i) {
      begin();
      out_.print("{{\"ph\":\"C\",\"pid\":{},\"tid\":0,\"name\":{},\"ts\":{},\"args\":{{{}:{}}}}}", process, name,
                 microseconds(curve.time_ns[i]), unit, curve.value[i]);
      out_.line_done();
    }
  }

  void rest(const Slices& slices, std::uint32_t i) {
    const Kind& kind = trace_.kind_of(slices, i);
    const NameId category = kind.category != 0 ? kind.category : kind.domain;
    arguments_.clear();
    append_json_arguments(arguments_, kind.domain, slices, i, names_);
    out_.print(",\"name\":{},\"cat\":{},\"args\":{}}}", names_[kind.name], names_[category], arguments_);
    out_.line_done();
  }

  const Trace& trace_;
  TextOutput out_;
  JsonNames names_;
  std::string arguments_;
  bool first_ = true;
};

}  // namespace

void export_chrome(const Trace& trace, std::FILE* out) { ChromeWriter(trace, out).write(); }

}  // namespace paceline::analysis
