// SPDX-License-Identifier: Apache-2.0
// Options from TOML files and presets. Keys are the options' long names without dashes. Values are numbers, text,
// booleans for switches, and arrays for options with several values.
#pragma once

#include <string>
#include <vector>

namespace paceline::train {

struct Setting {
  std::string key;
  std::vector<std::string> values;  // as on the command line; "true" or "false" for a switch
  std::string place;                // "FILE:LINE", for messages
  bool text = false;                // whether any value is in quotation marks
};

// Throws Error (usage) with the file and line if the file is unreadable or not TOML, or has a table or a key twice.
std::vector<Setting> read_settings(const std::string& file);

struct Preset {
  const char* name;
  const char* summary;
  const char* text;  // TOML
};
const std::vector<Preset>& presets();
std::vector<std::string> preset_names();

// Throws Error (usage) for an unknown name.
std::vector<Setting> preset_settings(const std::string& name);

// The value in TOML's notation: numbers and booleans bare, anything else in quotation marks.
std::string as_toml(const std::string& value);

}  // namespace paceline::train
