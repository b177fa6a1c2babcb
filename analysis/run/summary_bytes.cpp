// SPDX-License-Identifier: Apache-2.0
#include "analysis/run/summary_bytes.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <type_traits>

#include "profiler/format/error.h"

namespace paceline::analysis {
namespace summary_bytes {

// The members of the structures that are not copied byte by byte.
void each_member(auto& a, DurationSketch& v) { v.each_field(a); }
void each_member(auto& a, RangeStatistics& v) { a(v.domain, v.category, v.name, v.durations, v.device, v.others); }
void each_member(auto& a, KernelStatistics& v) {
  a(v.name, v.category, v.count, v.sum_ns, v.min_ns, v.max_ns, v.mean_ns, v.stddev_ns);
}
void each_member(auto& a, QueueStatistics& v) { a(v.stream, v.length); }
void each_member(auto& a, Launches& v) { a(v.statistics, v.queues); }
void each_member(auto& a, StreamIdle& v) { a(v.stream, v.host_wait_ns, v.kernel_wait_ns, v.other_ns); }
void each_member(auto& a, RankLosses& v) {
  a(v.events, v.main_ns, v.main_thread, v.other_threads, v.located, v.causes);
}
void each_member(auto& a, GpuTrouble& v) { a(v.device, v.xid_error, v.further_errors, v.slowed_down); }
void each_member(auto& a, NetworkPart& v) { a(v.first_layer, v.cost); }
void each_member(auto& a, StageTimes& v) { a(v.iterations, v.parts); }
void each_member(auto& a, LayerWork& v) { a(v.kind, v.backward, v.flops, v.bytes, v.iteration_ns); }
void each_member(auto& a, LayerCosts& v) { a(v.work, v.peak_flops, v.peak_bytes); }
void each_member(auto& a, ExchangeTime& v) { a(v.name, v.calls, v.bytes, v.overlap, v.median_ns); }
void each_member(auto& a, CollectiveCalls::Membership& v) { a(v.communicator, v.text, v.own_rank); }
void each_member(auto& a, CollectiveCalls::Pending& v) {
  a(v.communicator, v.operation, v.peer, v.tag, v.sends, v.receives, v.since_ns, v.until_ns);
}
void each_member(auto& a, CollectiveCalls& v) {
  a(v.rank, v.world_size, v.end_ns, v.operations, v.calls, v.unnumbered, v.communicators, v.open_slice, v.complete,
    v.complete_at_end, v.failed, v.busy, v.pending, v.covered[0], v.covered[1], v.covered[2]);
}
void each_member(auto& a, CgroupUse& v) {
  a(v.periods, v.throttled_periods, v.throttled_s, v.oom_kills, v.memory_hits, v.memory_reclaims);
}
void each_member(auto& a, RankSummary& v) {
  auto& [rank, world_size, path, format, host, boot_id, start_ns, end_ns, wall_ns, span_ns, ended, damaged, damage,
         clock_source, clock_error_ns, utc_of_zero_ns, set, facts, dropped, pauses, losses, first_loss,
         touched_iterations, phase_ns, iterations, interludes, collective_calls, communicated, unobserved, overlap, gpu,
         gpu_kernels, launches, stream_idle, ranges, descriptions, accuracies, waiting_for_cpu, gpu_troubles, cgroup,
         stage, layers, exchanges] = v;
  a(rank, world_size, path, format, host, boot_id, start_ns, end_ns, wall_ns, span_ns, ended, damaged, damage,
    clock_source, clock_error_ns, utc_of_zero_ns, set, facts, dropped, pauses, losses, first_loss, touched_iterations,
    phase_ns, iterations, interludes, collective_calls, communicated, unobserved, overlap, gpu, gpu_kernels, launches,
    stream_idle, ranges, descriptions, accuracies, waiting_for_cpu, gpu_troubles, cgroup, stage, layers, exchanges);
}

// Goes through the members of the summaries. An archive has these functions:
//
//   raw(data, size)    the bytes of what is copied byte by byte
//   count(kind, size)  how many entries a text ('s'), list ('['), map ('{') or optional ('?') is to have
//   close()            the end of these entries, or of the members of a structure
//
// and the constant `fills`: the entries come from the archive, not from the summaries.
template <class Archive>
class Members {
 public:
  explicit Members(Archive& archive) : archive_(archive) {}

  template <class... Values>
  void operator()(Values&... values) {
    (visit(values), ...);
  }

 private:
  void visit(std::string& text) {
    text.resize(archive_.count('s', text.size()));
    archive_.raw(text.data(), text.size());
  }
  template <class Value>
  void visit(std::vector<Value>& values) {
    values.resize(archive_.count('[', values.size()));
    if constexpr (std::is_trivially_copyable_v<Value>) {
      archive_.raw(values.data(), values.size() * sizeof(Value));
    } else {
      for (Value& value : values) visit(value);
    }
    archive_.close();
  }
  template <class Value>
  void visit(std::map<std::string, Value>& values) {
    std::size_t left = archive_.count('{', values.size());
    if constexpr (Archive::fills) {
      for (std::string key; left > 0; --left) {
        visit(key);
        visit(values[key]);
      }
    } else {
      for (auto& [key, value] : values) {
        std::string copy = key;
        visit(copy);
        visit(value);
      }
    }
    archive_.close();
  }
  template <class Value>
  void visit(Value& value) {
    if constexpr (std::is_trivially_copyable_v<Value>) {
      archive_.raw(&value, sizeof value);
    } else {
      each_member(*this, value);
      archive_.close();
    }
  }
  template <class Value>
  requires(!std::is_trivially_copyable_v<std::optional<Value>>) void visit(std::optional<Value>& value) {
    if (archive_.count('?', value ? 1 : 0) > 0) {
      if constexpr (Archive::fills) value.emplace();
      visit(*value);
    }
    archive_.close();
  }

  Archive& archive_;
};

class Writer {
 public:
  static constexpr bool fills = false;
  void raw(const void* data, std::size_t size) { bytes_.append(static_cast<const char*>(data), size); }
  std::size_t count(char, std::uint64_t size) {
    raw(&size, sizeof size);
    return size;
  }
  void close() {}
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  static constexpr bool fills = true;
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  void raw(void* data, std::size_t size) {
    if (size > bytes_.size()) throw Error("the summaries of another process are cut");
    if (size > 0) std::memcpy(data, bytes_.data(), size);
    bytes_.remove_prefix(size);
  }
  // Each entry takes a byte at least, so that a broken number does not ask for memory.
  std::size_t count(char, std::uint64_t size) {
    raw(&size, sizeof size);
    if (size > bytes_.size()) throw Error("the summaries of another process are cut");
    return size;
  }
  void close() {}
  bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

// Writes what each member is: the kinds of entries, and the number of bytes of what is copied byte by byte.
class Layout {
 public:
  static constexpr bool fills = true;
  void raw(const void*, std::size_t size) { text_ += std::to_string(size) + ','; }
  std::size_t count(char kind, std::size_t) {
    text_ += kind;
    return 1;
  }
  void close() { text_ += ')'; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

// Stands before the summaries. Another build may have other members.
std::string layout() {
  RankSummary summary;
  Layout layout;
  Members members(layout);
  members(summary);
  return layout.take();
}

}  // namespace summary_bytes

std::string bytes_of(std::vector<std::string>& notes, std::vector<RankSummary>& summaries) {
  summary_bytes::Writer writer;
  summary_bytes::Members members(writer);
  std::string layout = summary_bytes::layout();
  members(layout, notes, summaries);
  return writer.take();
}

SharedSummaries summaries_from(std::string_view bytes) {
  summary_bytes::Reader reader(bytes);
  summary_bytes::Members members(reader);
  std::string layout;
  SharedSummaries shared;
  members(layout);
  if (layout != summary_bytes::layout()) throw Error("the processes of the report run different builds of Paceline");
  members(shared.notes, shared.summaries);
  if (!reader.at_end()) throw Error("the summaries of another process are longer than they should be");
  return shared;
}

}  // namespace paceline::analysis
