// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/explain.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>
#include <utility>

#include "trainer/cli/option_table.h"

namespace paceline::train {
namespace {

// The Levenshtein distance: letters to change, add or leave out. Computed row by row.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, change});
    }
  }
  return row.back();
}

// Describes the first argument that no option took. An unknown option comes before other words, because its value is
// left over too.
std::string unknown(const CLI::App& app) {
  const CLI::App* command = &app;
  for (const CLI::App* sub : app.get_subcommands()) command = sub;
  const std::vector<std::string> left = app.remaining(true);
  const auto option = std::ranges::find_if(left, [](const std::string& word) { return word.starts_with('-'); });
  if (option == left.end()) {
    return left.empty() ? ""
                        : fmt::format("'{}' is neither an option, nor the value of one, nor a command", left.front());
  }
  const std::string name = option->substr(0, option->find('='));
  return fmt::format("there is no option {}{}", name, suggestion(name.substr(name.find_first_not_of('-')), *command));
}

}  // namespace

std::string suggestion(const std::string& key, const CLI::App& app, const char* dashes) {
  std::string best;
  // From the first number on it is another word. Names that begin alike count as close; the distance decides among
  // them.
  std::pair<std::size_t, std::size_t> least{3, 0};
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      const bool in_file = *dashes == '\0';
      const OptionRow* row = find_option(name);
      if (in_file && row != nullptr && row->command_line_only) continue;
      const bool begun = key.size() > 2 && (name.starts_with(key) || key.starts_with(name));
      const std::size_t letters = distance(key, name);
      const std::pair<std::size_t, std::size_t> away{begun ? 1 : letters, letters};
      if (away >= least) continue;
      least = away;
      best = name;
    }
  }
  return best.empty() ? "" : fmt::format(" (did you mean {}{}?)", dashes, best);
}

std::string explain(const CLI::ParseError& error, const CLI::App& app) {
  const std::string what = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::string named = unknown(app);
    return named.empty() ? what : named;
  }
  const std::string missing = ": 1 required ";
  if (const std::size_t at = what.find(missing); at != std::string::npos && what.ends_with(" missing")) {
    return fmt::format("{}: its value is missing", what.substr(0, at));
  }
  const std::string counted = ": At Most 1 required but received ";
  const std::size_t at = what.find(counted);
  if (at == std::string::npos) return what;
  return fmt::format("{}: takes one value, but {} are given", what.substr(0, at), what.substr(at + counted.size()));
}

}  // namespace paceline::train
