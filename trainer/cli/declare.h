// SPDX-License-Identifier: Apache-2.0
// Declares options to CLI11 and, with everything else that is known about them, as rows of the option table.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/cli/option_row.h"

namespace paceline::train {

class Declare {
 public:
  // rows: gets a row for each option; null for commands without a table.
  explicit Declare(CLI::App& app, std::vector<OptionRow>* rows = nullptr) : app_(app), rows_(rows) {}

  // The topic of the options that follow.
  Declare& topic(Topic topic) {
    topic_ = topic;
    return *this;
  }

  // An option with a value, a check of the value's text, and a text for --help, which also shows the default of numbers
  // and texts. row: what does not follow from the other arguments.
  template <typename Value>
  CLI::Option* option(const char* key, Value& value, const CLI::Validator& check, const std::string& help,
                      OptionRow row = {}) {
    return option(key, value, help, std::move(row))->check(check);
  }
  template <typename Value>
  CLI::Option* option(const char* key, Value& value, const std::string& help, OptionRow row = {}) {
    CLI::Option* const added = app_.add_option("--" + note(key, std::move(row)), value, help);
    if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>) added->capture_default_str();
    return added;
  }

  // An option whose text goes to a function.
  template <typename Value>
  CLI::Option* calling(const char* key, const std::function<void(const Value&)>& take, const std::string& help,
                       OptionRow row = {}) {
    return app_.add_option_function<Value>("--" + note(key, std::move(row)), take, help);
  }

  CLI::Option* flag(const char* key, bool& value, const std::string& help, OptionRow row = {}) {
    return app_.add_flag("--" + note(key, std::move(row)), value, help);
  }

 private:
  std::string note(const char* key, OptionRow row) {
    row.key = key;
    row.topic = topic_;
    if (rows_ != nullptr) rows_->push_back(std::move(row));
    return key;
  }

  CLI::App& app_;
  std::vector<OptionRow>* const rows_;
  Topic topic_ = Topic::run;
};

}  // namespace paceline::train
