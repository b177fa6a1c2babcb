// SPDX-License-Identifier: Apache-2.0
// What a Nsight Systems export says about the recording: strings, host, processes, threads and their ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "analysis/importers/sqlite/database.h"

namespace paceline::analysis {

// The numbers that Nsight Systems packs: 8 bits of hardware, 8 of the virtual machine, 24 of the process, 24 of the
// thread. Processes keep all bits but the thread's.
constexpr std::int64_t nsys_process(std::int64_t global_thread) { return global_thread & ~std::int64_t{0xff'ffff}; }
constexpr std::int64_t nsys_pid(std::int64_t global_process) { return global_process >> 24 & 0xff'ffff; }
constexpr std::uint64_t nsys_tid(std::int64_t global_thread) {
  return static_cast<std::uint64_t>(global_thread & 0xff'ffff);
}

// Numbers of ENUM_NSYS_EVENT_TYPE, the same in all versions.
enum class NsysEvent : std::int64_t {
  nvtx_category = 33,
  nvtx_mark = 34,
  nvtx_thread = 39,
  push_pop = 59,
  start_end = 60,
  push_pop_of_text = 70,   // from a text file that was imported
  start_end_of_text = 71,  // the same
  nvtx_domain = 75,
};

class NsysCapture {
 public:
  explicit NsysCapture(Database& database);

  // The text of a StringIds row, "" where there is none. Stays valid until the next call. O(log n).
  std::string_view string(std::int64_t id);
  // The text of a row of NVTX_EVENTS: that of the column text, else the string of textId.
  std::string_view text_or_string(const Rows& row, int text, int id);

  std::optional<std::int64_t> utc_of_zero_ns;
  std::string host, version;
  std::map<std::string, std::string> facts;
  std::map<std::int64_t, int> ranks;                                          // by process
  std::map<std::int64_t, std::string> process_names;                          // by process
  std::unordered_map<std::int64_t, std::string> thread_names;                 // by global thread
  std::optional<int> environment_rank, environment_size;                      // of the program that was started
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> nvtx_domains;  // by process and number
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::string> nvtx_categories;  // and by category

 private:
  void read_host();
  void read_environment(std::string_view text);
  void read_processes();
  void read_nvtx_names();
  void name_thread(std::int64_t global_thread, std::string_view name);

  Database& database_;
  Rows lookup_;
  std::string found_;
};

}  // namespace paceline::analysis
