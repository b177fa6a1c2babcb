// SPDX-License-Identifier: Apache-2.0
// What a run says about itself, by key: "model", "batch_per_rank", … (docs/trace-format.md).
#pragma once

#include <map>
#include <optional>
#include <string>

namespace paceline::analysis {

struct ConfigValue {
  std::string text;                // "resnet18", "32"; of a list or an object, its JSON
  std::optional<double> number{};  // where it is one
  bool is_text = false;            // JSON puts it in quotation marks
  bool operator==(const ConfigValue&) const = default;
};

struct RunConfig : std::map<std::string, ConfigValue> {
  // The text under `key`; `otherwise` if there is none, or something else.
  std::string text(const std::string& key, const std::string& otherwise = "") const {
    const auto found = find(key);
    return found != end() && found->second.is_text ? found->second.text : otherwise;
  }
  std::optional<double> number(const std::string& key) const {
    const auto found = find(key);
    return found != end() ? found->second.number : std::nullopt;
  }
  void set(const std::string& key, double value);
};

}  // namespace paceline::analysis
