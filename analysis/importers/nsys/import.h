// SPDX-License-Identifier: Apache-2.0
// The events of a Nsight Systems export, as ranks of a run.
//
// A process is a rank if the export names its MPI rank or if it worked on a GPU. Any other process goes to the tracks
// of the export's one rank. It is a rank of its own where the export has no rank, and is left out where it has several.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/importers/nsys/capture.h"
#include "analysis/importers/nsys/nccl.h"
#include "analysis/importers/sqlite/database.h"
#include "analysis/importers/sqlite/process_tracks.h"
#include "analysis/importers/sqlite/read_files.h"
#include "analysis/trace/intervals.h"

namespace paceline::analysis {

class NsysImport {
 public:
  using AddRank = std::function<RankBuilder&(Rank)>;

  NsysImport(Database& database, AddRank add_rank);

  // Reads all tables.
  void read(const ShareDone& done);
  // One line for each thing that was left out, for people.
  std::vector<std::string> notes() const;

 private:
  struct Process {
    Process(RankBuilder& rank, std::string prefix) : tracks(rank, std::move(prefix)), nccl(tracks) {}
    ProcessTracks tracks;
    NsysNccl nccl;
    std::unordered_map<std::int64_t, KindId> kernels, calls, mpi;    // by string
    std::map<std::pair<std::int64_t, std::int64_t>, KindId> ranges;  // by domain, and string without category
  };
  struct Request {  // of MPI, at one time
    std::int64_t time_ns = 0, handle = 0;
    TrackBuilder* track = nullptr;
    std::uint32_t slice = 0;
    bool posted = false;  // else a wait for it
  };
  struct MpiRow {
    std::int64_t thread = 0, start_ns = 0, end_ns = 0, text = 0;
    bool operator==(const MpiRow&) const = default;
  };

  // nullptr where the process is left out. `is_rank`: an event was found that makes it a rank.
  Process* process(std::int64_t global_process, bool is_rank);
  Process* add_process(std::int64_t global_process, bool is_rank);
  RankBuilder& add_rank_of(std::int64_t global_process);
  std::int64_t process_of(const Rows& row, int column);
  // The times in columns 0 and 1. Counts what cannot be used.
  bool read_times(const Rows& row, const char* table, std::int64_t& start_ns, std::int64_t& end_ns);

  // Visits the work of GPUs in the table. Columns 0 to 7 are in `Work` already; from 8 on the row has the further ones.
  using AddWork = std::function<void(const Rows& row, Process& of, const ProcessTracks::Work& work)>;
  void each_work(const char* table, std::initializer_list<std::string_view> further, const AddWork& add);
  // Visits the calls of threads in the table.
  using AddCall =
      std::function<void(ProcessTracks& of, std::uint64_t thread, const TimeInterval& time, std::string_view name)>;
  void each_call(const char* table, const AddCall& add);

  void read_kernels();
  void read_copies();
  void read_sets();
  void read_graphs();
  void read_waits();
  void read_calls();
  void read_library_calls(const char* table, const char* domain);
  void read_system_calls();
  void read_scheduling();
  void read_samples();
  void read_mpi(const char* table);
  void add_mpi_arguments(Process& process, TrackBuilder& track, std::uint32_t slice, const Rows& row,
                         std::int64_t global_process);
  NameId communicator_text(Process& process, std::int64_t global_process, std::int64_t handle);
  void find_communicators();
  void number_requests();
  void read_nvtx();
  KindId range_kind(Process& process, std::int64_t global_process, const Rows& row);
  void read_overhead();
  void read_gpu_metrics();
  std::optional<std::string> copy_label(std::int64_t kind);

  Database& database_;
  NsysCapture capture_;
  AddRank add_rank_;
  std::map<std::int64_t, std::unique_ptr<Process>> processes_;  // nullptr: left out
  std::map<std::int64_t, RankBuilder*> ranks_;                  // by process
  std::vector<RankBuilder*> in_order_;                          // as they were found
  std::optional<std::int64_t> process_of_calls_;                // for GPU work that names no process
  std::map<std::int64_t, std::uint64_t> left_out_;              // events, by process
  std::map<std::string, std::uint64_t> unusable_;               // rows, by table
  std::map<std::string, std::uint64_t> without_thread_;         // rows, by table
  std::map<std::int64_t, std::string> copy_labels_;
  std::map<std::int64_t, std::vector<std::int64_t>> communicators_;  // handles of collectives, by process
  std::map<std::int64_t, std::vector<Request>> requests_;            // by process
  std::int64_t last_process_ = -1;
  Process* last_ = nullptr;
};

}  // namespace paceline::analysis
