// Options from elsewhere than the command line: files in TOML and the presets. Keys are the options' long names without
// the dashes; values are numbers, text, booleans for options that take none, arrays for those that take several.
#pragma once

#include <string>
#include <vector>

namespace paceline::train {

struct Setting {
  std::string key;
  std::vector<std::string> values;  // as they would stand on the command line; of a switch "true" or "false"
  std::string place;                // "FILE:LINE", for messages
  bool text = false;                // whether any of the values stands in quotation marks
};

// Throws Error (usage) that names file and line: unreadable, not TOML, a table, a key twice.
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

// A value as TOML writes it: a number or a boolean bare, anything else in quotation marks.
std::string as_toml(const std::string& value);

}  // namespace paceline::train
