// SPDX-License-Identifier: Apache-2.0
// The option --align of the commands that load a run.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "analysis/load/merge.h"

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

}  // namespace paceline::cli
