// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "trainer/core/error.h"

namespace paceline::train {
namespace fault_text {
namespace {

constexpr int longest_delay = 3'600'000;  // milliseconds

// A number from 0 to longest_delay that is the whole text.
std::optional<std::chrono::milliseconds> milliseconds(std::string_view value) {
  int time = 0;
  const auto [end, bad] = std::from_chars(value.data(), value.data() + value.size(), time);
  if (bad != std::errc() || end != value.data() + value.size() || time < 0 || time > longest_delay) return std::nullopt;
  return std::chrono::milliseconds(time);
}

// "RANK:MS"
Faults::Delay parse_delay(const std::string& text, std::string_view value, int ranks) {
  const char* const end = value.data() + value.size();
  int rank = 0;
  const auto [colon, bad_rank] = std::from_chars(value.data(), end, rank);
  const bool separated = bad_rank == std::errc() && colon != end && *colon == ':';
  const auto time = separated ? milliseconds({colon + 1, end}) : std::nullopt;
  if (!time || rank < 0) {
    throw Error("‹fault› " + text, "expected RANK:MILLISECONDS", "write for example slow-rank=1:50", Status::usage);
  }
  if (rank >= ranks) {
    throw Error("‹fault› " + text, fmt::format("there is no rank {} in a job of {}", rank, ranks),
                "name one of the job's ranks", Status::usage);
  }
  return {rank, *time};
}

}  // namespace
}  // namespace fault_text

Faults parse_faults(const std::vector<std::string>& texts, int ranks) {
  Faults faults;
  std::vector<std::string_view> names;
  for (const std::string& text : texts) {
    const std::string_view whole = text, name = whole.substr(0, whole.find('='));
    if (std::ranges::count(names, name) > 0) {
      throw Error("‹fault› " + text, fmt::format("{} is given twice", name), "give it once", Status::usage);
    }
    names.push_back(name);
    const std::string_view value = name.size() < whole.size() ? whole.substr(name.size() + 1) : std::string_view();
    if (name == "slow-rank") {
      faults.slow_rank = fault_text::parse_delay(text, value, ranks);
    } else if (name == "slow-loader") {
      faults.slow_loader = fault_text::parse_delay(text, value, ranks);
    } else if (name == "slow-layers") {
      const auto time = fault_text::milliseconds(value);
      if (!time) {
        throw Error("‹fault› " + text, "expected MILLISECONDS", "write for example slow-layers=200", Status::usage);
      }
      faults.slow_layers = *time;
    } else if (whole == "duplicate-shards") {
      faults.duplicate_shards = true;
    } else if (whole == "tiny-buckets") {
      faults.tiny_buckets = true;
    } else {
      throw Error("‹fault› " + text, "unknown fault",
                  "use slow-rank=RANK:MS, slow-loader=RANK:MS, slow-layers=MS, duplicate-shards or tiny-buckets",
                  Status::usage);
    }
  }
  return faults;
}

}  // namespace paceline::train
