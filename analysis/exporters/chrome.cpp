// SPDX-License-Identifier: Apache-2.0
// The Trace Event Format (JSON object form), which Perfetto, chrome://tracing, PyTorch's tools and HTA open: a process
// for each rank, a thread for each track, slices as complete events, marks as instants, counters as counter events (a
// sum as its rise per second), and an arrow from each call to the GPU work that it started. Times are in µs with three
// decimals, so they are exact.
//
// CUDA events have the categories of PyTorch's profiler, and GPU work has the arguments "device" and "stream". A file
// of one rank has "distributedInfo", as the files of PyTorch's profiler have. "baseTimeNanoseconds" is the UTC time of
// the run's zero, where it is known.

#include "analysis/exporters/device_label.h"
#include "analysis/exporters/exporter.h"
#include "analysis/exporters/json_arguments.h"
#include "analysis/index/correlations.h"
#include "analysis/statistics/counters.h"
#include "analysis/text/text_output.h"

namespace paceline::analysis {
namespace chrome_writer {

// The category of an event in the files of PyTorch's profiler; "" where it is the same or has none.
std::string_view kineto_category(std::string_view category) {
  constexpr std::pair<std::string_view, std::string_view> categories[] = {{"runtime", "cuda_runtime"},
                                                                          {"driver", "cuda_driver"},
                                                                          {"synchronization", "cuda_runtime"},
                                                                          {"memcpy", "gpu_memcpy"},
                                                                          {"memset", "gpu_memset"}};
  for (const auto& [ours, theirs] : categories) {
    if (category == ours) return theirs;
  }
  return "";
}

class ChromeWriter {
 public:
  ChromeWriter(const ExportJob& job, std::FILE* file)
      : job_(job), out_(file), arguments_(job.trace()), heads_(job.trace().kinds.size()) {}

  void write() {
    out_.text("{\"displayTimeUnit\":\"ns\",");
    if (job_.ranks().size() == 1) {
      const Rank& rank = *job_.ranks().front();
      // HTA finds the rank by this text, with the space.
      out_.print("\"distributedInfo\": {{\"rank\": {}, \"world_size\": {}}},", rank.rank, rank.world_size);
    }
    if (const auto utc = job_.utc_of_zero_ns()) out_.print("\"baseTimeNanoseconds\":{},", *utc);
    out_.text("\"traceEvents\":[");
    for (const Rank* rank : job_.ranks()) write(*rank);
    out_.text("\n]}\n");
    out_.flush();
  }

 private:
  void write(const Rank& rank) {
    metadata("process_name", rank.rank, 0, json_string(process_name(rank)));
    metadata("process_sort_index", rank.rank, 0, std::to_string(rank.rank));
    threads_.assign(rank.tracks.size(), 0);
    int thread = 0;
    bool has_streams = false;
    for (std::size_t t = 0; t < rank.tracks.size(); ++t) {
      const Track& track = rank.tracks[t];
      if (track.kind == TrackKind::counter) {
        counter(rank.rank, track);
        continue;
      }
      threads_[t] = ++thread;
      has_streams |= track.kind == TrackKind::stream;
      metadata("thread_name", rank.rank, thread, json_string(track.label));
      metadata("thread_sort_index", rank.rank, thread, std::to_string(thread));
      // The arguments that only GPU work has, after all others.
      device_ = "";
      if (track.kind == TrackKind::stream) {
        const DeviceLabel at = device_label(track.label, thread);
        device_ = fmt::format("\"device\":{},\"stream\":{}", at.device, at.stream);
      }
      before_ = fmt::format(",\"pid\":{},\"tid\":{},\"ts\":", rank.rank, thread);
      job_.each(track.slices, [&](const SelectedSlice& slice) { event("X", track.slices, slice); });
      job_.each(track.marks, [&](const SelectedSlice& mark) { event("i\",\"s\":\"t", track.marks, mark); });
    }
    if (has_streams) flows(rank);
  }

  void begin() {
    out_.text(first_ ? "\n" : ",\n");
    first_ = false;
  }

  void microseconds(std::int64_t ns) {
    if (ns < 0) out_.text("-");
    const std::uint64_t size = ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
    const auto below = static_cast<unsigned>(size % 1000);
    out_.text(TextOutput::view(fmt::format_int(size / 1000)));
    const char decimals[] = {'.', static_cast<char>('0' + below / 100), static_cast<char>('0' + below / 10 % 10),
                             static_cast<char>('0' + below % 10)};
    out_.text({decimals, 4});
  }

  void metadata(const char* what, int process, int thread, const std::string& value) {
    begin();
    const bool sort = std::string_view(what).ends_with("sort_index");
    out_.print("{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"{}\",\"args\":{{\"{}\":{}}}}}", process, thread, what,
               sort ? "sort_index" : "name", value);
  }

  void event(std::string_view phase, const Slices& slices, const SelectedSlice& slice) {
    begin();
    out_.text("{\"ph\":\"");
    out_.text(phase);
    out_.text("\"");
    out_.text(before_);
    microseconds(slice.start_ns);
    if (phase == "X") {
      out_.text(",\"dur\":");
      microseconds(slice.duration_ns);
    }
    out_.text(head(slices.kind[slice.index]));
    std::string_view arguments = arguments_(slices, slice);
    if (device_.empty()) {
      out_.text(arguments);
    } else {
      arguments.remove_suffix(1);
      out_.text(arguments);
      if (arguments != "{") out_.text(",");
      out_.text(device_);
      out_.text("}");
    }
    out_.text("}");
    out_.line_done();
  }

  // Name and category, up to the arguments.
  const std::string& head(KindId id) {
    std::string& text = heads_[id];
    if (!text.empty()) return text;
    const Kind& kind = job_.trace().kinds[id];
    JsonNames& names = arguments_.names();
    const NameId category = kind.category != 0 ? kind.category : kind.domain;
    const bool cuda = job_.trace().names[kind.domain] == "cuda";
    const std::string_view theirs = cuda ? kineto_category(job_.trace().names[kind.category]) : "";
    text = fmt::format(",\"name\":{},\"cat\":{},\"args\":", names[kind.name],
                       theirs.empty() ? names[category] : json_string(theirs));
    return text;
  }

  // These tools draw values as they are, so a sum is written as its rise per second.
  void counter(int process, const Track& track) {
    const CounterCurve curve = curve_of(track.samples);
    const std::string name = json_string(track.label), unit = json_string(curve.unit.empty() ? "value" : curve.unit);
    const auto [first, last] = job_.selection().samples(curve.time_ns);
    for (std::size_t i = first; i < last; ++i) {
      begin();
      out_.print("{{\"ph\":\"C\",\"pid\":{},\"tid\":0,\"name\":{},\"ts\":", process, name);
      microseconds(curve.time_ns[i]);
      out_.print(",\"args\":{{{}:{}}}}}", unit, curve.value[i]);
      out_.line_done();
    }
  }

  // An arrow from each call to what it started on a device. Their ids differ from those of the other ranks.
  void flows(const Rank& rank) {
    const NameId key = job_.trace().names.find("correlation");
    if (key == 0) return;
    const Correlations correlations(job_.trace(), rank);
    const auto edge = [&](std::string_view phase, std::size_t track, std::int64_t time_ns) {
      begin();
      out_.print("{{\"ph\":\"{}\",\"id\":{},\"pid\":{},\"tid\":{},\"ts\":", phase, flow_, rank.rank, threads_[track]);
      microseconds(time_ns);
      out_.text(",\"cat\":\"ac2g\",\"name\":\"ac2g\"}");
      out_.line_done();
    };
    for (std::size_t t = 0; t < rank.tracks.size(); ++t) {
      if (rank.tracks[t].kind != TrackKind::stream) continue;
      const Slices& work = rank.tracks[t].slices;
      job_.each(work, [&](const SelectedSlice& slice) {
        const auto correlation = work.argument(slice.index, key);
        if (!correlation) return;
        const auto calls = correlations.calls(static_cast<std::uint32_t>(correlation->whole()));
        if (calls.empty()) return;
        const auto call = job_.selection().slice(rank.tracks[calls.front().track].slices, calls.front().slice);
        if (!call) return;
        ++flow_;
        edge("s", calls.front().track, call->start_ns);
        edge("f\",\"bp\":\"e", t, slice.start_ns);
      });
    }
  }

  const ExportJob& job_;
  TextOutput out_;
  JsonArguments arguments_;
  std::vector<std::string> heads_;  // by kind
  std::vector<int> threads_;        // by the rank's tracks; 0: a counter
  std::string before_, device_;
  std::uint64_t flow_ = 0;
  bool first_ = true;
};

}  // namespace chrome_writer

constexpr Exporter chrome_exporter{
    .name = "chrome",
    .what = "JSON for Perfetto, chrome://tracing and HTA",
    .target = Exporter::Target::stream,
    .write = [](const ExportJob& job, std::FILE* out) { chrome_writer::ChromeWriter(job, out).write(); }};

}  // namespace paceline::analysis
