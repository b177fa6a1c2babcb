// `paceline record [options] -- CMD …`: runs CMD with the recorder attached.
//
// The command replaces this process (exec), so signals reach it directly and its exit status is the job's. Nothing is
// left behind that could disturb it: the recorder inside learns all it needs from the environment (environment.h).
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace paceline::record {

struct RecordOptions {
  std::string output;                 // DIR, or DIR/PATTERN.pace; "" = default_output
  std::vector<std::string> settings;  // KEY=VALUE
  bool force = false;
  std::uint64_t buffer_bytes = 0;  // 0 = the recorder's default
  std::vector<std::string> command;
};

// Declares the subcommand `record`; where it is chosen, sets `chosen` to what runs it.
void add_record(CLI::App& app, std::function<int()>& chosen);

// Prepares the output directory and the environment, then becomes the command. Returns only on failure, after one line
// on standard error: 125 = the recorder itself failed, 126 = the command cannot be run, 127 = it is not found.
int run_recorded(const RecordOptions& options);

}  // namespace paceline::record
