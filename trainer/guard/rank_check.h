// SPDX-License-Identifier: Apache-2.0
// Checks before the first step that all ranks can run this job and run the same one. After one exchange of small
// records every rank knows the first mismatch and its rank.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "trainer/comm/collectives.h"

namespace paceline::train {

struct RankFacts {
  std::array<char, 64> host{};
  std::int32_t ranks_on_host = 1;
  std::uint64_t build = 0;          // hash of the program's file
  std::uint64_t data = 0;           // hash of labels and sizes
  std::uint64_t settings = 0;       // hash of the options
  std::uint64_t memory_left = 0;    // bytes on this host, after start-up
  std::uint64_t memory_wanted = 0;  // bytes that this rank will still take from its host
};

// Splits lines of the form NAME=VALUE. A line without '=' is ignored.
std::map<std::string, std::string> settings_by_name(const std::string& settings);

// Bytes that this host can still give to programs by the system's estimate, or that this process's control groups leave
// to it if these are fewer. The largest number if neither is known.
std::uint64_t memory_available();

// Collects this rank's facts. It reads /proc and the program's own file, which takes a few ms.
RankFacts facts_of_this_rank(const std::string& settings, std::uint64_t data, int ranks_on_host,
                             std::uint64_t memory_wanted);

struct Mismatch {
  int rank = 0;
  std::string what;       // one line, without the rank's name
  bool settings = false;  // whether the options differ
};

// The mismatch of the lowest rank that has one; the same on every rank. The value that most ranks have is taken as
// right.
std::optional<Mismatch> first_mismatch(std::span<const RankFacts> facts);

// The differences between two texts of NAME=VALUE lines: "--lr 0.1, there 0.2; …". Empty if there are none.
std::string differing_settings(const std::string& here, const std::string& there);

// Exchanges the facts and returns the first mismatch, with the options that differ. A collective call.
std::optional<Mismatch> check_ranks(Collectives& collectives, const RankFacts& own, const std::string& settings);

}  // namespace paceline::train
