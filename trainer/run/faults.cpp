#include "trainer/run/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "trainer/core/error.h"

namespace paceline::train {
namespace {

// "RANK:MS"
Faults::Delay parse_delay(const std::string& text, std::string_view value, int ranks) {
  const char* const end = value.data() + value.size();
  int rank = 0, time = 0;
  const auto [colon, bad_rank] = std::from_chars(value.data(), end, rank);
  const bool separated = bad_rank == std::errc() && colon != end && *colon == ':';
  const auto [last, bad_time] = std::from_chars(separated ? colon + 1 : end, end, time);
  if (!separated || bad_time != std::errc() || last != end || rank < 0 || time < 0 || time > 3'600'000) {
    throw Error("‹fault› " + text, "expected RANK:MILLISECONDS", "write for example slow-rank=1:50", Status::usage);
  }
  if (rank >= ranks) {
    throw Error("‹fault› " + text, fmt::format("there is no rank {} in a job of {}", rank, ranks),
                "name one of the job's ranks", Status::usage);
  }
  return {rank, std::chrono::milliseconds(time)};
}

}  // namespace

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
      faults.slow_rank = parse_delay(text, value, ranks);
    } else if (name == "slow-loader") {
      faults.slow_loader = parse_delay(text, value, ranks);
    } else if (whole == "duplicate-shards") {
      faults.duplicate_shards = true;
    } else if (whole == "tiny-buckets") {
      faults.tiny_buckets = true;
    } else {
      throw Error("‹fault› " + text, "unknown fault",
                  "use slow-rank=RANK:MS, slow-loader=RANK:MS, duplicate-shards or tiny-buckets", Status::usage);
    }
  }
  return faults;
}

}  // namespace paceline::train
