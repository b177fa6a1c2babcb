// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/nvprof/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include "analysis/importers/cuda_names.h"
#include "analysis/importers/nvprof/calls.h"

namespace paceline::analysis {
namespace nvprof_import {

constexpr const char* kernel_tables[] = {"CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", "CUPTI_ACTIVITY_KIND_KERNEL"};
constexpr const char* copy_tables[] = {"CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMCPY2"};
constexpr const char* set_table = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr const char* runtime_table = "CUPTI_ACTIVITY_KIND_RUNTIME";
constexpr const char* driver_table = "CUPTI_ACTIVITY_KIND_DRIVER";
constexpr const char* overhead_table = "CUPTI_ACTIVITY_KIND_OVERHEAD";
constexpr const char* marker_table = "CUPTI_ACTIVITY_KIND_MARKER";

constexpr std::int64_t object_process = 1, object_thread = 2;
constexpr std::int64_t marker_instant = 1, marker_start = 2, marker_end = 4;
constexpr std::int64_t no_stream = 0xffff'ffff;
constexpr std::int64_t year_2001_ns = 1'000'000'000'000'000'000;

std::uint32_t small(std::int64_t number) {
  return number < 0 || number > 0xffff'ffff ? 0 : static_cast<std::uint32_t>(number);
}

std::uint32_t word(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4 && at + i < bytes.size(); ++i) {
    number |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << 8 * i;
  }
  return number;
}

}  // namespace nvprof_import

NvprofImport::NvprofImport(Database& database, RankBuilder& rank)
    : database_(database), rank_(rank), lookup_(database.rows("StringTable", {"value"}, "WHERE _id_ = ?")) {
  find_zero();
  read_facts();
}

// Times are in nanoseconds since 1970.
void NvprofImport::find_zero() {
  zero_ns_ = std::numeric_limits<std::int64_t>::max();
  const auto look_at = [&](const char* table, const char* column) {
    for (Rows row = database_.rows(table, {column}); row.next();) {
      if (!row.is_null(0) && is_usable_time(row.integer(0))) zero_ns_ = std::min(zero_ns_, row.integer(0));
    }
  };
  for (const char* table : nvprof_import::kernel_tables) look_at(table, "start");
  for (const char* table : nvprof_import::copy_tables) look_at(table, "start");
  for (const char* table : {nvprof_import::set_table, nvprof_import::runtime_table, nvprof_import::driver_table,
                            nvprof_import::overhead_table}) {
    look_at(table, "start");
  }
  look_at(nvprof_import::marker_table, "timestamp");
  if (zero_ns_ == std::numeric_limits<std::int64_t>::max()) zero_ns_ = 0;
}

void NvprofImport::read_facts() {
  Rank& info = rank_.info();
  if (zero_ns_ > nvprof_import::year_2001_ns) info.utc_of_zero_ns = zero_ns_;
  for (const char* table : {nvprof_import::runtime_table, nvprof_import::driver_table}) {
    for (Rows row = database_.rows(table, {"processId"}, "LIMIT 1"); pid_ == 0 && row.next();) pid_ = row.integer(0);
  }
  info.pid = pid_;
  for (Rows row = database_.rows("CUPTI_ACTIVITY_KIND_DEVICE", {"id", "name"}); row.next();) {
    info.facts[fmt::format("gpu.{}", row.integer(0))] = string(row.integer(1));
  }
  Rows row = database_.rows("CUPTI_ACTIVITY_KIND_NAME", {"objectKind", "objectId", "name"});
  while (row.next()) {
    const std::int64_t kind = row.integer(0);
    const Thread object = object_thread(nvprof_import::object_thread, row.bytes(1));
    const std::string name = string(row.integer(2));
    if (kind == nvprof_import::object_process && object.process == pid_ && !name.empty()) info.command = {name};
    if (kind == nvprof_import::object_thread) process(object.process).name_thread(object.thread, name);
  }
}

// nvprof writes this text where it has no string.
std::string NvprofImport::string(std::int64_t id) {
  lookup_.bind(id);
  const std::string_view text = lookup_.next() ? lookup_.text(0) : std::string_view();
  return text == "-- null --" ? "" : std::string(text);
}

ProcessTracks& NvprofImport::process(std::int64_t pid) {
  std::unique_ptr<ProcessTracks>& tracks = processes_[pid];
  if (tracks == nullptr) {
    tracks = std::make_unique<ProcessTracks>(rank_, pid == pid_ ? "" : fmt::format("process {}, ", pid));
  }
  return *tracks;
}

NvprofImport::Thread NvprofImport::object_thread(std::int64_t object_kind, std::string_view object) const {
  if (object_kind != nvprof_import::object_thread || object.size() < 8) return {pid_, 0};
  return {nvprof_import::word(object, 0), nvprof_import::word(object, 4)};
}

bool NvprofImport::read_times(const Rows& row, const char* table, std::int64_t& start_ns, std::int64_t& end_ns) {
  start_ns = row.integer(0), end_ns = row.integer(1);
  if (!row.is_null(0) && !row.is_null(1) && is_usable_time(start_ns) && is_usable_time(end_ns) && end_ns >= start_ns) {
    start_ns -= zero_ns_;
    end_ns -= zero_ns_;
    return true;
  }
  ++unusable_[table];
  return false;
}

void NvprofImport::each_work(const char* table, std::initializer_list<std::string_view> further, const AddWork& add) {
  std::vector<std::string_view> columns = {"start",    "end",           "deviceId",   "contextId",
                                           "streamId", "correlationId", "graphNodeId"};
  columns.insert(columns.end(), further);
  Rows row = database_.rows(table, columns);
  while (row.next()) {
    ProcessTracks::Work work;
    if (!read_times(row, table, work.start_ns, work.end_ns)) continue;
    work.device = row.integer(2), work.context = row.integer(3), work.stream = row.integer(4);
    work.correlation = row.integer(5), work.graph_node = row.integer(6);
    add(row, work);
    ++rank_.info().cuda_events;
  }
}

void NvprofImport::read_kernels(const char* table) {
  std::unordered_map<std::int64_t, KindId> kinds;  // by string
  const auto add = [&](const Rows& row, const ProcessTracks::Work& work) {
    const auto [kind, fresh] = kinds.try_emplace(row.integer(7), 0);
    if (fresh) {
      const std::string name = demangled(string(row.integer(7)));
      kind->second = rank_.kind(name.empty() ? "kernel" : name, "cuda", "kernel");
    }
    ProcessTracks::Shape shape;
    shape.grid = {row.integer(8), row.integer(9), row.integer(10)};
    shape.block = {row.integer(11), row.integer(12), row.integer(13)};
    shape.registers = row.integer(14);
    shape.shared_bytes = std::int64_t{nvprof_import::small(row.integer(15))} + nvprof_import::small(row.integer(16));
    process(pid_).add_kernel(work, kind->second, shape);
  };
  each_work(table,
            {"name", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread",
             "staticSharedMemory", "dynamicSharedMemory"},
            add);
}

void NvprofImport::read_copies(const char* table) {
  const auto add = [&](const Rows& row, const ProcessTracks::Work& work) {
    ProcessTracks::Copy copy;
    copy.bytes = row.integer(7);
    copy.kind = nvprof_import::small(row.integer(8));
    copy.from = nvprof_import::small(row.integer(9)), copy.to = nvprof_import::small(row.integer(10));
    if (!row.is_null(11)) copy.from_device = nvprof_import::small(row.integer(11));
    if (!row.is_null(12)) copy.to_device = nvprof_import::small(row.integer(12));
    process(pid_).add_copy(work, copy);
  };
  each_work(table, {"bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId"}, add);
}

void NvprofImport::read_sets() {
  each_work(nvprof_import::set_table, {"bytes", "memoryKind"}, [&](const Rows& row, const ProcessTracks::Work& work) {
    const auto kind = row.is_null(8) ? std::nullopt : std::optional(nvprof_import::small(row.integer(8)));
    process(pid_).add_set(work, row.integer(7), kind);
  });
}

// A wait is inside the call with the same correlation, which gets the stream as an argument.
void NvprofImport::read_waits() {
  Rows row = database_.rows("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", {"correlationId", "streamId"});
  while (row.next()) {
    const std::int64_t stream = row.integer(1);
    if (!row.is_null(0) && !row.is_null(1) && stream >= 0 && stream < nvprof_import::no_stream) {
      process(pid_).add_wait(row.integer(0), stream);
    }
  }
}

void NvprofImport::read_calls(const char* table, bool driver) {
  std::unordered_map<std::int64_t, KindId> kinds;  // by number
  Rows row = database_.rows(table, {"start", "end", "cbid", "processId", "threadId", "correlationId", "returnValue"});
  while (row.next()) {
    std::int64_t start_ns = 0, end_ns = 0;
    if (!read_times(row, table, start_ns, end_ns)) continue;
    ProcessTracks& of = process(row.integer(3));
    const auto [kind, fresh] = kinds.try_emplace(row.integer(2), 0);
    if (fresh) kind->second = of.call_kind(cuda_call_name(driver, row.integer(2)), driver);
    const auto thread = static_cast<std::uint32_t>(row.integer(4));
    of.add_call(thread, start_ns, end_ns, kind->second, row.integer(5), row.integer(6));
    ++rank_.info().cuda_events;
  }
}

// NVTX. A range is two rows with one id, and only the first has the name. The database does not tell whether a range
// was pushed or started. The table of payloads is not read, because nvprof fills it with memory that it never set.
void NvprofImport::read_markers() {
  struct Open {
    std::int64_t start_ns = 0;
    Thread thread;
    KindId kind = 0;
  };
  std::map<std::int64_t, Open> open;                              // by id
  std::map<std::pair<std::int64_t, std::int64_t>, KindId> kinds;  // by domain and name
  const char* table = nvprof_import::marker_table;
  Rows row = database_.rows(table, {"timestamp", "flags", "id", "objectKind", "objectId", "name", "domain"});
  while (row.next()) {
    if (row.is_null(0) || !is_usable_time(row.integer(0))) {
      ++unusable_[table];
      continue;
    }
    const std::int64_t time_ns = row.integer(0) - zero_ns_, flags = row.integer(1), id = row.integer(2);
    const Thread thread = object_thread(row.integer(3), row.bytes(4));
    if ((flags & nvprof_import::marker_end) != 0) {
      const auto begun = open.find(id);
      if (begun == open.end() || time_ns < begun->second.start_ns) {
        ++ends_without_start_;
        continue;
      }
      const Open& range = begun->second;
      process(range.thread.process).add_range(range.thread.thread, {range.start_ns, time_ns, range.kind, std::nullopt});
      ++rank_.info().nvtx_events;
      open.erase(begun);
      continue;
    }
    const auto [kind, fresh] = kinds.try_emplace({row.integer(6), row.integer(5)}, 0);
    if (fresh) {
      const std::string name = string(row.integer(5));
      kind->second = rank_.kind(name, string(row.integer(6)));
    }
    if ((flags & nvprof_import::marker_start) != 0) {
      open[id] = {time_ns, thread, kind->second};
    } else if ((flags & nvprof_import::marker_instant) != 0) {
      process(thread.process).thread(thread.thread).add_mark(time_ns, kind->second);
      ++rank_.info().nvtx_events;
    }
  }
  for (const auto& [id, range] : open) {
    process(range.thread.process).thread(range.thread.thread).begin_slice(range.start_ns, range.kind);
    ++rank_.info().nvtx_events;
  }
}

void NvprofImport::read_overhead() {
  const char* table = nvprof_import::overhead_table;
  Rows row = database_.rows(table, {"start", "end", "overheadKind", "objectKind", "objectId"});
  while (row.next()) {
    std::int64_t start_ns = 0, end_ns = 0;
    if (!read_times(row, table, start_ns, end_ns)) continue;
    const Thread thread = object_thread(row.integer(3), row.bytes(4));
    TrackBuilder& track = process(thread.process).extra(TrackKind::thread, "CUPTI overhead");
    track.add_slice(start_ns, end_ns, overhead_name(nvprof_import::small(row.integer(2))), "cuda", "overhead");
  }
}

void NvprofImport::read(const ShareDone& done) {
  const std::function<void()> parts[] = {
      [&] { std::ranges::for_each(nvprof_import::kernel_tables, [&](const char* table) { read_kernels(table); }); },
      [&] { std::ranges::for_each(nvprof_import::copy_tables, [&](const char* table) { read_copies(table); }); },
      [&] { read_sets(); },
      [&] { read_waits(); },
      [&] { read_calls(nvprof_import::runtime_table, false); },
      [&] { read_calls(nvprof_import::driver_table, true); },
      [&] { read_markers(); },
      [&] { read_overhead(); },
  };
  run_parts(parts, done);
  for (const auto& [pid, tracks] : processes_) tracks->finish();
  note_damage(database_, rank_.info());
}

std::vector<std::string> NvprofImport::notes() const {
  std::vector<std::string> notes;
  for (const auto& [table, rows] : unusable_) {
    notes.push_back(
        fmt::format("{}: {} rows of {} are left out: their times cannot be used", database_.name(), rows, table));
  }
  if (ends_without_start_ > 0) {
    notes.push_back(fmt::format("{}: {} ends of NVTX ranges are left out: the trace has no start of their ranges",
                                database_.name(), ends_without_start_));
  }
  return notes;
}

}  // namespace paceline::analysis
