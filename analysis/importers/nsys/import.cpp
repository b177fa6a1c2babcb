// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/nsys/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace paceline::analysis {
namespace nsys_import {

constexpr const char* call_table = "CUPTI_ACTIVITY_KIND_RUNTIME";
constexpr std::int64_t runtime_class = 0, driver_class = 1;

// Tables with events that the model has no place for. Their rows are only mentioned.
constexpr const char* unread_tables[] = {
    "SYSCALL",           "OPENMP_EVENT_KIND_TASK", "CUDA_GPU_MEMORY_USAGE_EVENTS",
    "UCP_SUBMIT_EVENTS", "NET_NIC_METRIC",         "CUDA_UM_CPU_PAGE_FAULT_EVENTS"};

// Nsight Systems numbers the kinds of memory one below CUPTI.
std::uint32_t memory_kind(const Rows& row, int column) {
  const std::int64_t kind = row.integer(column);
  return row.is_null(column) || kind < 0 || kind > 6 ? 0 : static_cast<std::uint32_t>(kind + 1);
}

std::optional<std::uint32_t> device(const Rows& row, int column) {
  const std::int64_t number = row.integer(column);
  if (row.is_null(column) || number < 0 || number > 0xffff) return std::nullopt;
  return static_cast<std::uint32_t>(number);
}

}  // namespace nsys_import

NsysImport::NsysImport(Database& database, AddRank add_rank)
    : database_(database), capture_(database), add_rank_(std::move(add_rank)) {
  for (Rows row = database_.rows(nsys_import::call_table, {"globalTid"}, "LIMIT 1"); row.next();) {
    process_of_calls_ = nsys_process(row.integer(0));
  }
  for (Rows row = database_.rows("ENUM_CUDA_MEMCPY_OPER", {"id", "label"}); row.next();) {
    copy_labels_[row.integer(0)] = row.text(1);
  }
}

void NsysImport::read(const ShareDone& done) {
  find_communicators();
  const std::function<void()> parts[] = {
      [&] { read_kernels(); },
      [&] { read_copies(); },
      [&] { read_sets(); },
      [&] { read_graphs(); },
      [&] { read_waits(); },
      [&] { read_calls(); },
      [&] { read_library_calls("CUDNN_EVENTS", "cudnn"); },
      [&] { read_library_calls("CUBLAS_EVENTS", "cublas"); },
      [&] { read_mpi("MPI_P2P_EVENTS"); },
      [&] { read_mpi("MPI_COLLECTIVES_EVENTS"); },
      [&] { read_mpi("MPI_START_WAIT_EVENTS"); },
      [&] { read_mpi("MPI_OTHER_EVENTS"); },
      [&] { number_requests(); },
      [&] { read_nvtx(); },
      [&] { read_overhead(); },
      [&] { read_system_calls(); },
      [&] { read_scheduling(); },
      [&] { read_samples(); },
      [&] { read_gpu_metrics(); },
  };
  run_parts(parts, done);
  for (const auto& [global, process] : processes_) {
    if (process == nullptr) continue;
    process->nccl.finish();
    process->tracks.finish();
    process->tracks.rank().info().nccl_events += process->nccl.events();
  }
  for (RankBuilder* rank : in_order_) {
    Rank& info = rank->info();
    if (info.rank == unknown_rank && in_order_.size() == 1 && capture_.environment_rank) {
      info.rank = *capture_.environment_rank;
    }
    if (capture_.environment_size) info.world_size = *capture_.environment_size;
    note_damage(database_, info);
  }
}

std::vector<std::string> NsysImport::notes() const {
  std::vector<std::string> notes;
  std::vector<std::string> unread;
  for (const char* table : nsys_import::unread_tables) {
    if (database_.has(table) && database_.holds_rows(table)) unread.emplace_back(table);
  }
  if (!unread.empty()) {
    notes.push_back(fmt::format("{}: tables that are not read: {}", database_.name(), fmt::join(unread, ", ")));
  }
  for (const auto& [global, events] : left_out_) {
    notes.push_back(fmt::format("{}: {} events of process {} are left out: the trace names no rank for it",
                                database_.name(), events, nsys_pid(global)));
  }
  for (const auto& [table, rows] : unusable_) {
    notes.push_back(
        fmt::format("{}: {} rows of {} are left out: their times cannot be used", database_.name(), rows, table));
  }
  for (const auto& [table, rows] : without_thread_) {
    notes.push_back(fmt::format("{}: {} rows of {} are left out: they name no thread", database_.name(), rows, table));
  }
  return notes;
}

RankBuilder& NsysImport::add_rank_of(std::int64_t global_process) {
  RankBuilder*& builder = ranks_[global_process];
  if (builder != nullptr) return *builder;
  Rank info;
  const auto rank = capture_.ranks.find(global_process);
  info.rank = rank != capture_.ranks.end() ? rank->second : unknown_rank;
  info.path = database_.name();
  info.format = "nsys";
  info.host = capture_.host;
  info.pid = nsys_pid(global_process);
  const auto name = capture_.process_names.find(global_process);
  if (name != capture_.process_names.end() && !name->second.empty()) info.command = {name->second};
  info.facts = capture_.facts;
  if (!capture_.version.empty()) info.facts["recorded_by"] = "NVIDIA Nsight Systems " + capture_.version;
  info.utc_of_zero_ns = capture_.utc_of_zero_ns;
  builder = &add_rank_(std::move(info));
  in_order_.push_back(builder);
  return *builder;
}

NsysImport::Process* NsysImport::process(std::int64_t global_process, bool is_rank) {
  if (global_process == last_process_ && last_ != nullptr) return last_;
  const auto found = processes_.find(global_process);
  Process* known = found != processes_.end() ? found->second.get() : add_process(global_process, is_rank);
  if (known == nullptr) {
    ++left_out_[global_process];
    return nullptr;
  }
  last_process_ = global_process;
  last_ = known;
  return known;
}

NsysImport::Process* NsysImport::add_process(std::int64_t global_process, bool is_rank) {
  std::unique_ptr<Process>& made = processes_[global_process];
  // The processes that are ranks, or will be when their first event is read.
  std::set<std::int64_t> ranks;
  for (const auto& [process, rank] : capture_.ranks) ranks.insert(process);
  for (const auto& [process, builder] : ranks_) ranks.insert(process);
  if (is_rank || ranks.empty() || ranks.contains(global_process)) {
    made = std::make_unique<Process>(add_rank_of(global_process), "");
  } else if (ranks.size() == 1) {
    made =
        std::make_unique<Process>(add_rank_of(*ranks.begin()), fmt::format("process {}, ", nsys_pid(global_process)));
  } else {
    return nullptr;
  }
  for (const auto& [thread, name] : capture_.thread_names) {
    if (nsys_process(thread) == global_process) made->tracks.name_thread(nsys_tid(thread), name);
  }
  return made.get();
}

std::int64_t NsysImport::process_of(const Rows& row, int column) {
  return row.is_null(column) ? process_of_calls_.value_or(0) : nsys_process(row.integer(column));
}

bool NsysImport::read_times(const Rows& row, const char* table, std::int64_t& start_ns, std::int64_t& end_ns) {
  start_ns = row.integer(0);
  end_ns = row.is_null(1) ? start_ns : row.integer(1);
  if (!row.is_null(0) && is_usable_time(start_ns) && is_usable_time(end_ns) && end_ns >= start_ns) return true;
  ++unusable_[table];
  return false;
}

void NsysImport::each_work(const char* table, std::initializer_list<std::string_view> further, const AddWork& add) {
  std::vector<std::string_view> columns = {"start",    "end",           "deviceId",  "contextId",
                                           "streamId", "correlationId", "globalPid", "graphNodeId"};
  columns.insert(columns.end(), further);
  Rows row = database_.rows(table, columns);
  while (row.next()) {
    ProcessTracks::Work work;
    if (!read_times(row, table, work.start_ns, work.end_ns)) continue;
    work.device = row.integer(2), work.context = row.integer(3), work.stream = row.integer(4);
    work.correlation = row.integer(5), work.graph_node = row.integer(7);
    Process* of = process(process_of(row, 6), true);
    if (of == nullptr) continue;
    add(row, *of, work);
    ++of->tracks.rank().info().cuda_events;
  }
}

void NsysImport::each_call(const char* table, const AddCall& add) {
  Rows row = database_.rows(table, {"start", "end", "globalTid", "nameId"});
  while (row.next()) {
    std::int64_t start_ns = 0, end_ns = 0;
    if (!read_times(row, table, start_ns, end_ns)) continue;
    if (row.is_null(2)) {
      ++without_thread_[table];
      continue;
    }
    Process* of = process(nsys_process(row.integer(2)), false);
    if (of != nullptr) add(of->tracks, nsys_tid(row.integer(2)), {start_ns, end_ns}, capture_.string(row.integer(3)));
  }
}

void NsysImport::read_kernels() {
  const auto add = [&](const Rows& row, Process& of, const ProcessTracks::Work& work) {
    const int name_column = row.is_null(8) ? 9 : 8;
    const auto [kind, fresh] = of.kernels.try_emplace(row.integer(name_column), 0);
    if (fresh) {
      const std::string_view name = capture_.string(row.integer(name_column));
      kind->second = of.tracks.rank().kind(name.empty() ? "kernel" : name, "cuda", "kernel");
    }
    ProcessTracks::Shape shape;
    shape.grid = {row.integer(10), row.integer(11), row.integer(12)};
    shape.block = {row.integer(13), row.integer(14), row.integer(15)};
    shape.registers = row.integer(16);
    shape.shared_bytes =
        row.integer(17) / 2 + row.integer(18) / 2 < (std::int64_t{1} << 61) ? row.integer(17) + row.integer(18) : 0;
    of.tracks.add_kernel(work, kind->second, shape);
    const Vocabulary& words = of.tracks.rank().vocabulary();
    of.nccl.add_kernel(words.names[words.kinds[kind->second].name], work.correlation, work.start_ns, work.end_ns);
  };
  each_work("CUPTI_ACTIVITY_KIND_KERNEL",
            {"demangledName", "shortName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
             "registersPerThread", "staticSharedMemory", "dynamicSharedMemory"},
            add);
}

std::optional<std::string> NsysImport::copy_label(std::int64_t kind) {
  constexpr std::int64_t first_unified = 11;  // copies that the driver makes for managed memory; CUPTI has none
  if (kind < first_unified) return std::nullopt;
  const auto label = copy_labels_.find(kind);
  if (label != copy_labels_.end()) return "Memcpy " + label->second;
  constexpr const char* built_in[] = {"Memcpy HtoD unified", "Memcpy DtoH unified", "Memcpy DtoD unified"};
  const std::int64_t at = kind - first_unified;
  return at < static_cast<std::int64_t>(std::size(built_in)) ? built_in[at] : fmt::format("Memcpy kind {}", kind);
}

void NsysImport::read_copies() {
  const auto add = [&](const Rows& row, Process& of, const ProcessTracks::Work& work) {
    const std::optional<std::string> label = copy_label(row.integer(9));
    ProcessTracks::Copy copy;
    copy.kind = row.integer(9) < 0 || label ? 0 : static_cast<std::uint32_t>(row.integer(9));
    copy.from = nsys_import::memory_kind(row, 10), copy.to = nsys_import::memory_kind(row, 11);
    copy.from_device = nsys_import::device(row, 12), copy.to_device = nsys_import::device(row, 13);
    copy.bytes = row.integer(8);
    if (label) copy.name = *label;
    of.tracks.add_copy(work, copy);
  };
  each_work("CUPTI_ACTIVITY_KIND_MEMCPY", {"bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId"},
            add);
}

void NsysImport::read_sets() {
  each_work("CUPTI_ACTIVITY_KIND_MEMSET", {"bytes", "memKind"},
            [](const Rows& row, Process& of, const ProcessTracks::Work& work) {
              const auto kind = row.is_null(9) ? std::nullopt : std::optional(nsys_import::memory_kind(row, 9));
              of.tracks.add_set(work, row.integer(8), kind);
            });
}

void NsysImport::read_graphs() {
  each_work(
      "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", {"graphId"},
      [](const Rows& row, Process& of, const ProcessTracks::Work& work) { of.tracks.add_graph(work, row.integer(8)); });
}

// A wait is inside the call with the same correlation, which gets the stream as an argument.
void NsysImport::read_waits() {
  Rows row = database_.rows("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", {"globalPid", "correlationId", "streamId"});
  while (row.next()) {
    if (row.is_null(1) || row.is_null(2) || row.integer(2) < 0 || row.integer(2) >= 0xffff'ffff) continue;
    Process* of = process(process_of(row, 0), false);
    if (of != nullptr) of->tracks.add_wait(row.integer(1), row.integer(2));
  }
}

// Where call chains are recorded, a call has two rows with one correlation: Nsight Systems' own around CUPTI's. Only
// CUPTI's is kept then.
void NsysImport::read_calls() {
  struct Pending {
    std::int64_t start_ns = 0, end_ns = 0, correlation = 0, result = 0;
    KindId kind = 0;
  };
  std::map<std::int64_t, Pending> pending;  // by thread
  const auto add = [&](std::int64_t thread, const Pending& call) {
    Process* of = process(nsys_process(thread), false);
    if (of == nullptr) return;
    of->tracks.add_call(nsys_tid(thread), call.start_ns, call.end_ns, call.kind, call.correlation, call.result);
    of->nccl.add_call(nsys_tid(thread), call.start_ns, call.correlation);
    ++of->tracks.rank().info().cuda_events;
  };
  const char* table = nsys_import::call_table;
  Rows row =
      database_.rows(table, {"start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue"});
  while (row.next()) {
    Pending call;
    if (!read_times(row, table, call.start_ns, call.end_ns)) continue;
    const std::int64_t thread = row.integer(3), event_class = row.integer(2);
    Process* of = process(nsys_process(thread), false);
    if (of == nullptr) continue;
    call.correlation = row.integer(4), call.result = row.integer(6);
    const auto [kind, fresh] = of->calls.try_emplace(row.integer(5), 0);
    if (fresh) {
      const std::string_view name = capture_.string(row.integer(5));
      const bool driver =
          event_class == nsys_import::driver_class || (name.starts_with("cu") && !name.starts_with("cuda"));
      kind->second = of->tracks.call_kind(name.empty() ? "CUDA call" : name, driver);
    }
    call.kind = kind->second;
    const auto before = pending.find(thread);
    if (before != pending.end()) {
      if (before->second.correlation != call.correlation) add(thread, before->second);
      pending.erase(before);
    }
    const bool of_cupti =
        row.is_null(2) || event_class == nsys_import::runtime_class || event_class == nsys_import::driver_class;
    if (of_cupti) {
      add(thread, call);
    } else {
      pending[thread] = call;
    }
  }
  for (const auto& [thread, call] : pending) add(thread, call);
}

void NsysImport::read_library_calls(const char* table, const char* domain) {
  each_call(table, [&](ProcessTracks& of, std::uint64_t thread, const TimeInterval& time, std::string_view name) {
    of.thread(thread).add_slice(time.start_ns, time.end_ns, name, domain);
  });
}

void NsysImport::read_overhead() {
  each_call("PROFILER_OVERHEAD", [](ProcessTracks& of, std::uint64_t, const TimeInterval& time, std::string_view name) {
    TrackBuilder& track = of.extra(TrackKind::thread, "profiler overhead");
    track.add_slice(time.start_ns, time.end_ns, name, "cuda", "overhead");
  });
}

// Samples belong to a GPU and not to a process, so the first rank of the export has them.
void NsysImport::read_gpu_metrics() {
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> names;
  for (Rows row = database_.rows("TARGET_INFO_GPU_METRICS", {"typeId", "metricId", "metricName"}); row.next();) {
    names[{row.integer(0), row.integer(1)}] = row.text(2);
  }
  if (names.empty() || !database_.has("GPU_METRICS", "timestamp") || in_order_.empty()) return;
  RankBuilder& rank = *in_order_.front();
  std::map<std::pair<std::int64_t, std::int64_t>, TrackBuilder*> counters;
  Rows row = database_.rows("GPU_METRICS", {"timestamp", "typeId", "metricId", "value"}, "ORDER BY timestamp");
  while (row.next()) {
    const std::pair key(row.integer(1), row.integer(2));
    const auto name = names.find(key);
    if (name == names.end() || row.is_null(0) || !is_usable_time(row.integer(0))) {
      ++unusable_["GPU_METRICS"];
      continue;
    }
    TrackBuilder*& counter = counters[key];
    if (counter == nullptr) {
      // "DRAM Read Bandwidth [Throughput %]"
      std::string text = name->second, unit;
      const std::size_t bracket = text.rfind(" [");
      if (bracket != text.npos && text.ends_with(']')) {
        unit = text.find('%', bracket) != text.npos ? "%" : text.substr(bracket + 2, text.size() - bracket - 3);
        text.resize(bracket);
      }
      counter = &rank.add_counter(std::move(text), std::move(unit), fmt::format("GPU {}", key.first & 0xff), false);
    }
    counter->add_sample(row.integer(0), static_cast<double>(row.integer(3)));
    ++rank.info().counter_events;
  }
}

}  // namespace paceline::analysis
