// SPDX-License-Identifier: Apache-2.0
// The options of the commands that load a run: --align and --processes.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "analysis/load/merge.h"
#include "analysis/load/run_paths.h"

namespace paceline::cli {

// `method` must outlive the parsing.
inline void add_align_option(CLI::App& command, analysis::ClockMethod& method) {
  command
      .add_option_function<std::string>(
          "--align", [&method](const std::string& name) { method = *analysis::clock_method_named(name); },
          "How the ranks' clocks are aligned: auto (default); recorded: by the UTC times in the files alone; exchange: "
          "by the clocks that the recorder compared; collectives: by the ends of matched collectives")
      ->type_name("METHOD")
      ->check(CLI::IsMember({"auto", "recorded", "exchange", "collectives"}));
}

// `processes` must outlive the parsing.
inline void add_processes_option(CLI::App& command, analysis::Processes& processes) {
  command
      .add_option_function<std::string>(
          "--processes", [&processes](const std::string& name) { processes = *analysis::processes_named(name); },
          "What the processes in one Chrome JSON or Perfetto file are: auto (default): ranks if their names have the "
          "numbers of ranks, else one rank; ranks: a rank each; one: one rank")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"auto", "ranks", "one"}));
}

}  // namespace paceline::cli
