// What --help and --show-config print.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace paceline::train {

std::vector<std::string> help_topics();

// The options of one topic; of "all", every one; of "", those of a first run and the list of topics.
std::string help_text(const CLI::App& app, const std::string& topic);

// Every option with the value it has, as a file for --config.
std::string settings_text(const CLI::App& app);

}  // namespace paceline::train
