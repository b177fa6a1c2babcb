// SPDX-License-Identifier: Apache-2.0
// The events of a database that nvprof made (nvprof -o FILE), which is one rank.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/importers/sqlite/database.h"
#include "analysis/importers/sqlite/process_tracks.h"
#include "analysis/importers/sqlite/read_files.h"

namespace paceline::analysis {

class NvprofImport {
 public:
  NvprofImport(Database& database, RankBuilder& rank);

  // Reads all tables.
  void read(const ShareDone& done);
  // One line for each thing that was left out, for people.
  std::vector<std::string> notes() const;

 private:
  struct Thread {
    std::int64_t process = 0;
    std::uint64_t thread = 0;
  };
  void read_facts();
  void find_zero();
  std::string string(std::int64_t id);
  ProcessTracks& process(std::int64_t pid);
  // The thread of a process in CUPTI's 12 bytes: pid, tid, padding.
  Thread object_thread(std::int64_t object_kind, std::string_view object) const;
  // The times in columns 0 and 1, from the zero. Counts what cannot be used.
  bool read_times(const Rows& row, const char* table, std::int64_t& start_ns, std::int64_t& end_ns);
  // Visits the work of GPUs in the table. Columns 0 to 6 are in `Work` already; from 7 on the row has the further ones.
  using AddWork = std::function<void(const Rows& row, const ProcessTracks::Work& work)>;
  void each_work(const char* table, std::initializer_list<std::string_view> further, const AddWork& add);

  void read_kernels(const char* table);
  void read_copies(const char* table);
  void read_sets();
  void read_waits();
  void read_calls(const char* table, bool driver);
  void read_markers();
  void read_overhead();

  Database& database_;
  RankBuilder& rank_;
  Rows lookup_;
  std::int64_t zero_ns_ = 0;
  std::int64_t pid_ = 0;
  std::map<std::int64_t, std::unique_ptr<ProcessTracks>> processes_;
  std::map<std::string, std::uint64_t> unusable_;  // rows, by table
  std::uint64_t ends_without_start_ = 0;
};

}  // namespace paceline::analysis
