// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <sstream>

#include "trainer/cli/option_table.h"
#include "trainer/cli/settings.h"

namespace paceline::train {
namespace {

// The position of the option's row in the table, which is its place in the help text.
std::ptrdiff_t place_of(const CLI::Option& option) { return find_option(key_of(option)) - option_table().data(); }

std::vector<const CLI::Option*> options_of(const CLI::App& app, Topic topic) {
  std::vector<const CLI::Option*> options = app.get_options([&](const CLI::Option* option) {
    const OptionRow* row = find_option(key_of(*option));
    return row != nullptr && row->topic == topic;
  });
  std::ranges::sort(options, {}, [](const CLI::Option* option) { return place_of(*option); });
  return options;
}

// CLI11 lists the options that an option excludes in the order of their addresses, which changes from run to run.
struct SteadyFormatter : CLI::Formatter {
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string text = CLI::Formatter::make_option_opts(option), mark = " Excludes:";  // always the last part
    const std::size_t at = text.find(mark);
    if (at == std::string::npos) return text;
    std::istringstream rest(text.substr(at + mark.size()));
    std::vector<std::string> names{std::istream_iterator<std::string>(rest), {}};
    std::ranges::sort(names);
    return fmt::format("{} {}", text.substr(0, at + mark.size()), fmt::join(names, " "));
  }
};

std::string section(const CLI::App& app, const TopicName& topic) {
  SteadyFormatter formatter;
  formatter.column_width(30);
  const auto options = options_of(app, topic.topic);
  return options.empty() ? "" : formatter.make_group(topic.title, false, options);
}

std::string line_of(const CLI::App& app, const CLI::Option& option) {
  const std::string key = key_of(option);
  if (option.get_items_expected_max() == 0) {  // a switch
    return fmt::format("{} = {}\n", key, option.count() > 0 && option.as<bool>() ? "true" : "false");
  }
  if (const std::string why = idle(app, option); !why.empty()) return fmt::format("# {}: {}\n", key, why);
  for (const CLI::Option* other : option.get_needs()) {
    if (other->count() == 0) return fmt::format("# {}: needs {}\n", key, key_of(*other));
  }
  for (const CLI::Option* other : option.get_excludes()) {
    if (option.count() == 0 && other->count() > 0) return fmt::format("# {}: not with {}\n", key, key_of(*other));
  }
  if (option.count() == 0) {
    if (option.get_default_str().empty()) return fmt::format("# {}: not given\n", key);
    return fmt::format("{} = {}\n", key, as_toml(option.get_default_str()));
  }
  std::vector<std::string> values;
  for (const std::string& value : option.results()) values.push_back(as_toml(value));
  const bool several = option.get_delimiter() != '\0' || values.size() > 1;
  return several ? fmt::format("{} = [{}]\n", key, fmt::join(values, ", ")) : fmt::format("{} = {}\n", key, values[0]);
}

}  // namespace

std::vector<std::string> help_topics() {
  std::vector<std::string> names{"all"};
  for (const TopicName& topic : topics()) names.emplace_back(topic.name);
  return names;
}

std::string help_text(const CLI::App& app, const std::string& topic) {
  std::string text;
  for (const TopicName& one : topics()) {
    if (topic == "all" || topic == one.name || (topic.empty() && std::string_view(one.name) == "run")) {
      text += section(app, one);
    }
  }
  if (!topic.empty()) return text;
  text += "\nMore with --help TOPIC:\n";
  for (const TopicName& one : topics()) {
    text += fmt::format("  {:<12}{}\n", one.name, one.title);
  }
  text +=
      fmt::format("  {:<12}{}\n\nPresets (--preset NAME; --show-config prints one in full):\n", "all", "All of these");
  for (const Preset& preset : presets()) text += fmt::format("  {:<14}{}\n", preset.name, preset.summary);
  text += "\nOther commands (each with its own --help):\n";
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    text += fmt::format("  {:<18}{}\n", command->get_name(), command->get_description());
  }
  return text;
}

std::string settings_text(const CLI::App& app) {
  std::string text = "# All settings of this run; a file for --config.\n";
  for (const TopicName& topic : topics()) {
    text += fmt::format("\n# {}\n", topic.title);
    for (const CLI::Option* option : options_of(app, topic.topic)) {
      if (find_option(key_of(*option))->setting) text += line_of(app, *option);
    }
  }
  return text;
}

}  // namespace paceline::train
