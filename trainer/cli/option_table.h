// One row for each option of training: its help topic, the options beside which it has an effect, and how ranks and
// resumed runs treat it. Help, presets, settings files and the checks of options follow this table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace paceline::train {

// Another option that decides whether an option has an effect: --poly-power only has one with --schedule poly.
struct OptionOwner {
  std::string owner;  // key of the other option
  std::vector<std::string> values;
  bool others = false;  // false: the option has an effect with these values; true: with all other values

  bool suits(const std::string& value) const;
  std::string refusal(const std::string& value) const;  // e.g. "only applies to --schedule poly, not to cosine"
};

enum class Topic { run, data, model, optimizer, schedule, batch_norm, parallel, device, output };

struct TopicName {
  Topic topic;
  const char* name;   // for --help NAME
  const char* title;  // of the section
};
const std::vector<TopicName>& topics();

enum class SameOnRanks { yes, no, all_or_none };

struct OptionRow {
  const char* key;  // the long name without dashes
  Topic topic;
  // An option has an effect beside any one of its owners; without owners it always has.
  std::vector<OptionOwner> owners{};
  SameOnRanks same = SameOnRanks::yes;  // all_or_none: either all ranks have it or none, with any value
  bool learning = true;  // decides what is learned or how fast: a resumed run with another value is another run
  bool setting = true;   // --show-config prints it
  bool command_line_only = false;  // not allowed in settings files and presets
};

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
