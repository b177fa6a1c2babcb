// Before the first step: whether all ranks are able to run this job, and run the same one. One exchange of small
// records, after which every rank knows the first trouble and whose it is.
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
  std::uint64_t build = 0;                  // hash of the program's file
  std::uint64_t data = 0;                   // hash of labels and sizes
  std::uint64_t settings = 0;               // hash of the options
  std::uint64_t open_files = 0, stack = 0;  // soft limits: descriptors, bytes
  std::uint64_t memory_left = 0;            // bytes on this host, after start-up
  std::uint64_t memory_wanted = 0;          // bytes that this rank will still take
};

// Splits lines of the form NAME=VALUE. A line without '=' is ignored.
std::map<std::string, std::string> settings_by_name(const std::string& settings);

// Bytes that this host can still give to programs, as the system estimates them, or that this process's control groups
// leave it, where these are fewer; the most there is where nobody knows.
std::uint64_t memory_available();

// This rank's. data: see above. Reads /proc and the program's own file: a few ms.
RankFacts facts_of_this_rank(const std::string& settings, std::uint64_t data, int ranks_on_host,
                             std::uint64_t memory_wanted);

struct Mismatch {
  int rank = 0;
  std::string what;       // one line, without the rank's name
  bool settings = false;  // it is about the options
};

// The first trouble of all ranks' facts, by rank; the same on every rank that looks. What most ranks have is right.
std::optional<Mismatch> first_mismatch(std::span<const RankFacts> facts);

// The lines in which two texts of NAME=VALUE lines differ: "--lr 0.1, there 0.2; …". Empty where they do not.
std::string differing_settings(const std::string& here, const std::string& there);

// Exchanges the facts; a collective call. On trouble `what` names it, completed by the options that differ.
std::optional<Mismatch> check_ranks(Collectives& collectives, const RankFacts& own, const std::string& settings);

}  // namespace paceline::train
