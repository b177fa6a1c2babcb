// SPDX-License-Identifier: Apache-2.0
// The table of the options of training, as they are declared (add_options.h). Help, presets, settings files and the
// checks of options follow it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainer/cli/option_row.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace paceline::train {

struct TopicName {
  Topic topic;
  const char* name;   // for --help NAME
  const char* title;  // of the section
};
const std::vector<TopicName>& topics();

const std::vector<OptionRow>& option_table();  // in the order of the help text

// The row of a key; null if there is none.
const OptionRow* find_option(std::string_view key);

// The option's key: its long name without dashes.
std::string key_of(const CLI::Option& option);

// Why the option has no effect with the values that its owners have in `app` after parsing; empty if it has one.
std::string idle(const CLI::App& app, const CLI::Option& option);

// Lines of --NAME=VALUE of the options that must be the same on every rank.
std::string settings_of(const CLI::App& app);

// Those lines of settings_of() that decide what is learned or how fast.
std::string learning_settings(const std::string& settings);

// The text with each ‹KEY› of this table, or of a subcommand, replaced by --KEY (see core/error.h).
std::string with_option_names(std::string text);

}  // namespace paceline::train
