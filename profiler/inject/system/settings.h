// SPDX-License-Identifier: Apache-2.0
// The settings of the recorder's core. They are read once from the environment (record/environment.h), before the file
// is created. Event sources read their own variables.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::inject {

// Which children of a recorded process are recorded (children.h).
enum class Children : std::uint8_t { none, workers, all };

struct Settings {
  std::size_t live_bytes = 0;   // of the live area
  std::size_t names_bytes = 0;  // limit of the memory for the texts of names
  std::uint64_t max_size = 0;   // bytes of the file; 0 = no limit
  std::int64_t delay_ns = 0, duration_ns = 0;
  Children children = Children::workers;
  bool lossless = false;     // threads wait for room instead of dropping events
  std::int64_t ring_ns = 0;  // 0 = everything is kept
  int ring_signal = 0;
};
extern Settings settings;

void read_settings();

// The variable's value if it is set and not empty, else `otherwise`.
const char* text_or(const char* variable, const char* otherwise);
// True if the variable is "1".
bool is_switched_on(const char* variable);
// The variable as a whole number. Returns `otherwise` if the variable is unset or empty, or, after one line on standard
// error, if it is not a whole number.
std::uint64_t number_or(const char* variable, std::uint64_t otherwise);
// The variable, which is in milliseconds, as nanoseconds: at most a century, 0 if the variable is unset.
std::int64_t milliseconds_in(const char* variable);

}  // namespace paceline::inject
