// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/checkpoint_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "trainer/core/error.h"

namespace paceline::train {

CheckpointEvery parse_checkpoint_every(const std::string& text) {
  if (text == "epoch") return {};
  CheckpointEvery every;
  const char* const end = text.data() + text.size();
  const auto [whole_end, whole_error] = std::from_chars(text.data(), end, every.iterations);
  if (whole_error == std::errc() && whole_end == end && every.iterations > 0) return every;
  every.iterations = 0;
  const auto [unit, error] = std::from_chars(text.data(), end, every.seconds);
  const std::string_view name(unit, static_cast<std::size_t>(end - unit));
  const double factor = name == "s" ? 1 : name == "m" || name == "min" ? 60 : name == "h" ? 3600 : 0;
  every.seconds *= factor;
  if (error == std::errc() && every.seconds > 0 && every.seconds <= 1e9) return every;
  throw Error(fmt::format("'{}'", text), "not a time to write checkpoints at",
              "write epoch, a number of iterations such as 500, or a time such as 10m", Status::usage);
}

Meeting plan_meeting(double every, double since, double iteration, std::uint64_t done) {
  // Write now if the time is less than half an iteration, or a twentieth of the interval, away.
  const bool write = every - since <= std::max(iteration / 2, every / 20);
  const double left = write ? every : every - since;
  const double ahead = iteration > 0 ? left / 2 / iteration : 1;
  return {write, done + static_cast<std::uint64_t>(std::clamp(std::round(ahead), 1.0, 1e12))};
}

CheckpointTimes::CheckpointTimes(CheckpointEvery every, Collectives& collectives, std::uint64_t first)
    : every_(every), collectives_(collectives), next_(first + 1), last_(first) {}

bool CheckpointTimes::meets(std::uint64_t done) const {
  if (every_.iterations > 0) return done % every_.iterations == 0;
  return every_.seconds > 0 && done >= next_;
}

bool CheckpointTimes::due(std::uint64_t done) {
  if (every_.iterations > 0) return true;
  const Clock::time_point now = Clock::now();
  const std::chrono::duration<double> since = now - written_, steps = now - met_;
  const Meeting meeting =
      plan_meeting(every_.seconds, since.count(), steps.count() / static_cast<double>(done - last_), done);
  std::array<std::uint64_t, 2> decision{meeting.write ? 1u : 0u, meeting.next};
  collectives_.broadcast(std::span<std::uint64_t>(decision), 0);
  next_ = decision[1];
  last_ = done;
  met_ = now;
  if (decision[0] != 0) written_ = now;
  return decision[0] != 0;
}

}  // namespace paceline::train
