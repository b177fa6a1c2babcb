// SPDX-License-Identifier: Apache-2.0
// The options of `paceline record`, by topic. Each becomes an environment variable that the recorder reads
// (environment.h).
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace paceline::record {

struct RecordOptions {
  std::string output;                 // DIR, or DIR/PATTERN.pace; "" = default_output
  std::vector<std::string> settings;  // KEY=VALUE
  bool force = false;
  std::string stage;
  std::string iterations, iteration_name, capture_range;
  std::vector<std::string> nvtx_domains, nvtx_exclude_domains, nvtx_categories, nvtx_exclude_categories;
  std::string pytorch;  // "phases", "modules", or "" for neither
  double delay_s = 0, duration_s = 0;
  bool children = false, no_children = false;
  std::string scheduler;    // "off", "sums"; else the recorder's default
  double counters_hz = -1;  // 0 = no counters; negative = the recorder's default
  std::string sample;       // a rate in Hz, "off", or "" for the recorder's default
  std::string sample_threads = "main";
  std::uint64_t buffer_bytes = 0, max_memory_bytes = 0, max_size_bytes = 0;  // 0 = the recorder's default
  bool lossless = false;
  double ring_s = 0, ring_slow = 0, hang_s = 0;
  std::string ring_signal;
  bool no_cuda = false, no_nccl = false;
  bool cuda_graph_nodes = false, nccl_proxy = false, nccl_kernel_channels = false;
  std::vector<std::string> command;
};

// Declares the options. CLI11 rejects invalid values before the command runs.
void add_options(CLI::App& record, RecordOptions& options);

// Throws CLI::ValidationError for options that exclude each other.
void check_options(const RecordOptions& options);

// The variables for the given options, except those that need the output directory.
std::vector<std::pair<const char*, std::string>> variables_of(const RecordOptions& options);

}  // namespace paceline::record
