// SPDX-License-Identifier: Apache-2.0
// The texts of --help and --show-config.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace paceline::train {

std::vector<std::string> help_topics();

// The options of one topic. For "all": every option. For an empty topic: the options of a first run and the list of
// topics.
std::string help_text(const CLI::App& app, const std::string& topic);

// Every option with its value, in the format of a file for --config.
std::string settings_text(const CLI::App& app);

}  // namespace paceline::train
