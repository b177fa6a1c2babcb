// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/sqlite/process_tracks.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/importers/cuda_names.h"

namespace paceline::analysis {
namespace process_tracks {

constexpr std::uint32_t between_devices = 10;  // CUPTI_ACTIVITY_MEMCPY_KIND_PTOP

std::string device_memory(std::uint32_t kind, std::optional<std::uint32_t> device, std::int64_t of_stream) {
  return memory_text(kind, device ? *device : static_cast<std::uint32_t>(of_stream));
}

// The spans that a track holds, in the order of their starts, outer ones first.
struct Span {
  std::int64_t start_ns = 0, end_ns = 0;
};

// Answers which span is the innermost one at a time. Times of queries must rise.
class Innermost {
 public:
  explicit Innermost(const std::vector<Span>& spans) : spans_(spans) {}

  // nullptr where no span is open. Spans that begin or end at that time do not count.
  const Span* at(std::int64_t time_ns) {
    while (next_ < spans_.size() && spans_[next_].start_ns < time_ns) {
      close(spans_[next_].start_ns);
      open_.push_back(&spans_[next_++]);
    }
    close(time_ns);
    return open_.empty() ? nullptr : open_.back();
  }

 private:
  void close(std::int64_t time_ns) {
    while (!open_.empty() && open_.back()->end_ns <= time_ns) open_.pop_back();
  }
  const std::vector<Span>& spans_;
  std::vector<const Span*> open_;
  std::size_t next_ = 0;
};

bool outer_first(const Span& a, const Span& b) {
  return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
}

}  // namespace process_tracks

std::string_view without_version(std::string_view function) {
  const std::size_t digits = function.find_last_not_of("0123456789") + 1;
  std::string_view plain = function;
  if (digits < function.size() && digits > 2 && function.substr(digits - 2, 2) == "_v") {
    plain = function.substr(0, digits - 2);
  }
  for (const std::string_view ending : {"_ptsz", "_ptds"}) {
    if (plain.size() > ending.size() && plain.ends_with(ending)) plain.remove_suffix(ending.size());
  }
  return plain;
}

std::optional<std::string_view> environment_value(std::string_view environment, std::string_view variable) {
  constexpr std::string_view separators(" \t\r\n;,\"'\0", 9);
  for (std::size_t at = environment.find(variable); at != environment.npos; at = environment.find(variable, at + 1)) {
    const std::size_t after = at + variable.size();
    if (at > 0 && separators.find(environment[at - 1]) == separators.npos) continue;
    if (after >= environment.size() || environment[after] != '=') continue;
    const std::string_view value = environment.substr(after + 1);
    return value.substr(0, value.find_first_of(separators));
  }
  return std::nullopt;
}

TrackBuilder& ProcessTracks::thread(std::uint64_t thread) {
  TrackBuilder*& track = threads_[thread];
  if (track == nullptr) {
    std::string label = fmt::format("{}thread {}", prefix_, thread);
    const auto name = thread_names_.find(thread);
    if (name != thread_names_.end() && !name->second.empty()) label += fmt::format(" ({})", name->second);
    track = &rank_.add_track(TrackKind::thread, std::move(label), thread);
  }
  return *track;
}

TrackBuilder& ProcessTracks::extra(TrackKind kind, const std::string& label) {
  TrackBuilder*& track = extras_[label];
  if (track == nullptr) track = &rank_.add_track(kind, prefix_ + label);
  return *track;
}

NameId ProcessTracks::shape_text(const std::array<std::int64_t, 3>& shape) {
  const auto [found, fresh] = shapes_.try_emplace(shape, 0);
  if (fresh) found->second = names().intern(fmt::format("{}×{}×{}", shape[0], shape[1], shape[2]));
  return found->second;
}

// Streams are numbered for each context. Most programs have one context for each device, and the context is left out.
std::uint32_t ProcessTracks::add_work(const Work& work, KindId kind) {
  const std::tuple id(work.device, work.context, work.stream);
  if (last_stream_ == nullptr || id != last_stream_id_) {
    TrackBuilder*& track = streams_[id];
    if (track == nullptr) {
      const std::int64_t first = first_context_.try_emplace(work.device, work.context).first->second;
      std::string label = fmt::format("{}GPU {} stream {}", prefix_, work.device, work.stream);
      if (work.context != first) label += fmt::format(" context {}", work.context);
      track = &rank_.add_track(TrackKind::stream, std::move(label), static_cast<std::uint64_t>(work.stream));
    }
    last_stream_ = track;
    last_stream_id_ = id;
  }
  const std::uint32_t slice = last_stream_->add_slice(work.start_ns, work.end_ns, kind);
  last_stream_->varying_argument(slice, names().intern("correlation"), work.correlation);
  if (work.graph_node != 0) last_stream_->varying_argument(slice, names().intern("graph_node"), work.graph_node);
  return slice;
}

void ProcessTracks::add_kernel(const Work& work, KindId kind, const Shape& shape) {
  const std::uint32_t slice = add_work(work, kind);
  last_stream_->text_argument(slice, names().intern("grid"), shape_text(shape.grid));
  last_stream_->text_argument(slice, names().intern("block"), shape_text(shape.block));
  if (shape.registers > 0) last_stream_->argument(slice, names().intern("registers"), shape.registers);
  if (shape.shared_bytes > 0) last_stream_->argument(slice, names().intern("shared"), shape.shared_bytes);
}

void ProcessTracks::add_copy(const Work& work, const Copy& copy) {
  const KindId kind = rank_.kind(copy.name.empty() ? copy_name(copy.kind) : std::string(copy.name), "cuda", "memcpy");
  const std::uint32_t slice = add_work(work, kind);
  const auto from_device = copy.kind == process_tracks::between_devices ? copy.from_device : std::nullopt;
  const auto to_device = copy.kind == process_tracks::between_devices ? copy.to_device : std::nullopt;
  last_stream_->argument(slice, names().intern("bytes"), copy.bytes);
  last_stream_->text_argument(slice, names().intern("from"),
                              names().intern(process_tracks::device_memory(copy.from, from_device, work.device)));
  last_stream_->text_argument(slice, names().intern("to"),
                              names().intern(process_tracks::device_memory(copy.to, to_device, work.device)));
}

void ProcessTracks::add_set(const Work& work, std::int64_t bytes, std::optional<std::uint32_t> memory_kind) {
  const std::uint32_t slice = add_work(work, rank_.kind("Memset", "cuda", "memset"));
  last_stream_->argument(slice, names().intern("bytes"), bytes);
  if (!memory_kind) return;
  last_stream_->text_argument(slice, names().intern("to"),
                              names().intern(process_tracks::device_memory(*memory_kind, std::nullopt, work.device)));
}

void ProcessTracks::add_graph(const Work& work, std::int64_t graph) {
  add_work(work, rank_.kind(fmt::format("graph {}", graph), "cuda", "graph"));
}

KindId ProcessTracks::call_kind(std::string_view function, bool driver) {
  const std::string_view plain = without_version(function);
  return rank_.kind(plain, "cuda", waits(plain) ? "synchronization" : driver ? "driver" : "runtime");
}

void ProcessTracks::add_call(std::uint64_t thread_id, std::int64_t start_ns, std::int64_t end_ns, KindId kind,
                             std::int64_t correlation, std::int64_t result) {
  TrackBuilder& track = thread(thread_id);
  const std::uint32_t slice = track.add_slice(start_ns, end_ns, kind);
  track.varying_argument(slice, names().intern("correlation"), correlation);
  if (result != 0) track.argument(slice, names().intern("result"), result);
  if (waited_for_.empty()) return;
  const auto wait = waited_for_.find(correlation);
  if (wait != waited_for_.end()) track.argument(slice, names().intern("stream"), wait->second);
}

void ProcessTracks::finish() {
  for (auto& [thread, ranges] : ranges_) place(thread, ranges);
  ranges_.clear();
}

// A range nests if the innermost span at its start ends no earlier than the range, and the innermost span at its end
// begins no later. The ranges that nest in the other spans may still cross each other.
void ProcessTracks::place(std::uint64_t thread_id, std::vector<Range>& ranges) {
  TrackBuilder& track = thread(thread_id);
  const Slices& slices = track.slices();
  std::vector<process_tracks::Span> spans;
  for (std::uint32_t i = 0; i < slices.size(); ++i) {
    if (!track.is_open(i)) spans.push_back({slices.start_ns[i], slices.end_ns(i)});
  }
  std::ranges::sort(spans, process_tracks::outer_first);
  std::ranges::stable_sort(ranges, [](const Range& a, const Range& b) {
    return process_tracks::outer_first({a.start_ns, a.end_ns}, {b.start_ns, b.end_ns});
  });

  std::vector<bool> crosses(ranges.size(), false);
  process_tracks::Innermost at_start(spans);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const process_tracks::Span* around = at_start.at(ranges[i].start_ns);
    crosses[i] = around != nullptr && around->end_ns < ranges[i].end_ns;
  }
  std::vector<std::size_t> by_end(ranges.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) by_end[i] = i;
  std::ranges::sort(by_end, {}, [&](std::size_t i) { return ranges[i].end_ns; });
  process_tracks::Innermost at_end(spans);
  for (const std::size_t i : by_end) {
    const process_tracks::Span* around = at_end.at(ranges[i].end_ns);
    if (around != nullptr && around->start_ns > ranges[i].start_ns) crosses[i] = true;
  }

  std::vector<std::int64_t> open;  // ends of the ranges on the thread's own track
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Range& range = ranges[i];
    if (!crosses[i]) {
      while (!open.empty() && open.back() <= range.start_ns) open.pop_back();
      if (!open.empty() && open.back() < range.end_ns) {
        crosses[i] = true;
      } else {
        open.push_back(range.end_ns);
      }
    }
    TrackBuilder& to = crosses[i] ? extra(TrackKind::thread, fmt::format("thread {}, ranges", thread_id)) : track;
    const std::uint32_t slice = to.add_slice(range.start_ns, range.end_ns, range.kind);
    if (range.payload) to.add_argument(slice, *range.payload);
  }
}

}  // namespace paceline::analysis
