// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/option_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "trainer/cli/add_options.h"

namespace paceline::train {
namespace option_table_rows {
namespace {

std::vector<OptionRow> make_rows() {
  CLI::App app;
  TrainOptions options;
  std::vector<OptionRow> rows;
  add_training_options(app, options, &rows);
  using enum SameOnRanks;
  rows.push_back({.key = "preset", .learning = false, .setting = false});  // options.cpp declares these
  rows.push_back({.key = "config", .same = no, .setting = false, .command_line_only = true});
  rows.push_back({.key = "show-config", .learning = false, .setting = false, .command_line_only = true});
  rows.push_back({.key = "help", .same = no, .setting = false, .command_line_only = true});
  rows.push_back({.key = "version", .learning = false, .setting = false, .command_line_only = true});
  return rows;
}

}  // namespace
}  // namespace option_table_rows

const std::vector<TopicName>& topics() {
  static const std::vector<TopicName> all{{Topic::run, "run", "Run"},
                                          {Topic::data, "data", "Data"},
                                          {Topic::model, "model", "Model"},
                                          {Topic::optimizer, "optimizer", "Optimizer"},
                                          {Topic::schedule, "schedule", "Learning rate and batch"},
                                          {Topic::batch_norm, "batch-norm", "Batch norm"},
                                          {Topic::parallel, "parallel", "Ranks"},
                                          {Topic::device, "device", "GPUs"},
                                          {Topic::output, "output", "Log, checkpoints, evaluation"}};
  return all;
}

const std::vector<OptionRow>& option_table() {
  static const std::vector<OptionRow> rows = option_table_rows::make_rows();
  return rows;
}

const OptionRow* find_option(std::string_view key) {
  const auto found =
      std::ranges::find(option_table(), key, [](const OptionRow& row) { return std::string_view(row.key); });
  return found == option_table().end() ? nullptr : &*found;
}

std::string key_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? option.get_name() : option.get_lnames().front();
}

std::string idle(const CLI::App& app, const CLI::Option& option) {
  const OptionRow* row = find_option(key_of(option));
  std::vector<std::string> refusals;
  for (const OptionOwner& owner : row != nullptr ? row->owners : std::vector<OptionOwner>()) {
    const CLI::Option& other = *app.get_option("--" + owner.owner);
    const bool is_switch = other.get_items_expected_max() == 0;
    const std::string value = is_switch           ? (other.count() > 0 && other.as<bool>() ? "true" : "false")
                              : other.count() > 0 ? other.results().front()
                                                  : other.get_default_str();
    if (owner.suits(value)) return {};
    refusals.push_back(owner.refusal(value));
  }
  return fmt::format("{}", fmt::join(refusals, ", or "));
}

std::string settings_of(const CLI::App& app) {
  std::string settings;
  for (const CLI::Option* option : app.get_options()) {
    const OptionRow* row = find_option(key_of(*option));
    const SameOnRanks same = row != nullptr ? row->same : SameOnRanks::yes;
    const bool given = option->count() > 0;
    if (same == SameOnRanks::all_or_none && given) settings += option->get_name() + "=given\n";
    if (same != SameOnRanks::yes) continue;
    settings += fmt::format("{}={}\n", option->get_name(),
                            given ? fmt::format("{}", fmt::join(option->results(), ",")) : option->get_default_str());
  }
  return settings;
}

std::string learning_settings(const std::string& settings) {
  std::string kept;
  std::istringstream in(settings);
  for (std::string line; std::getline(in, line);) {
    const OptionRow* row = find_option(std::string_view(line).substr(2, line.find('=') - 2));
    if (row == nullptr || row->learning) kept += line + "\n";
  }
  return kept;
}

std::string with_option_names(std::string text) {
  constexpr std::string_view open = "‹", close = "›";
  for (std::size_t at = 0; (at = text.find(open, at)) != std::string::npos;) {
    const std::size_t end = text.find(close, at);
    if (end == std::string::npos) break;
    text.erase(end, close.size());
    text.replace(at, open.size(), "--");
  }
  return text;
}

}  // namespace paceline::train
