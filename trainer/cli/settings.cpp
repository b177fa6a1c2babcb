// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "trainer/core/error.h"

namespace paceline::train {
namespace {

std::string text_of(const toml::node& node, const std::string& place, std::string_view key) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* boolean = node.as_boolean()) return boolean->get() ? "true" : "false";
  throw Error(fmt::format("{}: '{}' is not a number, text, true, false or an array of these", place, key),
              Status::usage);
}

// where: the file's name, for messages.
std::vector<Setting> parse_settings(std::string_view text, const std::string& where) {
  std::vector<Setting> settings;
  try {
    const toml::table table = toml::parse(text, where);
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      Setting setting{name, {}, fmt::format("{}:{}", where, node.source().begin.line)};
      const auto add = [&](const toml::node& value) {
        setting.values.push_back(text_of(value, setting.place, name));
        setting.text = setting.text || value.is_string();
      };
      if (const toml::array* array = node.as_array()) {
        for (const toml::node& element : *array) add(element);
      } else {
        add(node);
      }
      settings.push_back(std::move(setting));
    }
  } catch (const toml::parse_error& error) {
    throw Error(fmt::format("{}:{}: {}", where, error.source().begin.line, error.description()), Status::usage);
  }
  return settings;
}

}  // namespace

std::vector<Setting> read_settings(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw Error(fmt::format("{}: cannot be opened: {}", file, std::strerror(errno)), Status::usage);
  std::string text;
  try {
    text.assign(std::istreambuf_iterator<char>(in), {});
  } catch (const std::ios_base::failure&) {  // libstdc++ throws here regardless of exceptions()
    throw Error(fmt::format("{}: cannot be read: {}", file, std::strerror(errno)), Status::usage);
  }
  return parse_settings(text, file);
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.emplace_back(preset.name);
  return names;
}

std::vector<Setting> preset_settings(const std::string& name) {
  for (const Preset& preset : presets()) {
    if (name == preset.name) return parse_settings(preset.text, "preset " + name);
  }
  throw Error(fmt::format("no preset '{}'; known: {}", name, fmt::join(preset_names(), ", ")), Status::usage);
}

std::string as_toml(const std::string& value) {
  try {
    const toml::table table = toml::parse("x = " + value);
    const toml::node* node = table.size() == 1 ? table.get("x") : nullptr;
    if (node && (node->is_integer() || node->is_floating_point() || node->is_boolean())) return value;
  } catch (const toml::parse_error&) {
  }
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace paceline::train
