// What the environment asks of the recorder (record/environment.h), read once, before the file is made.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::inject {

// Which children of a recorded process are recorded (children.h).
enum class Children : std::uint8_t { none, workers, all };

struct Settings {
  std::size_t live_bytes = 0;   // of the live area
  std::size_t names_bytes = 0;  // bound of what the texts of names may take
  std::uint64_t max_size = 0;   // bytes of the file; 0 = no bound
  bool by_iterations = false;   // record first_iteration to last_iteration, both included
  std::uint64_t first_iteration = 0, last_iteration = 0;
  const char* iteration_name = nullptr;  // pattern; null: the built-in rules
  std::int64_t delay_ns = 0, duration_ns = 0;
  bool capture_range = false;
  Children children = Children::workers;
  bool lossless = false;     // threads wait for room instead of dropping events
  std::int64_t ring_ns = 0;  // 0 = everything is kept
  int ring_signal = 0;
  std::uint64_t ring_slow_permille = 0;
  std::int64_t hang_ns = 0;
  std::int64_t counters_ns = 0;  // between two samplings; 0 = none
};
extern Settings settings;

void read_settings();

// A variable that is there and not empty, else `otherwise`.
const char* text_or(const char* variable, const char* otherwise);
// A switch: "1".
bool is_switched_on(const char* variable);

}  // namespace paceline::inject
