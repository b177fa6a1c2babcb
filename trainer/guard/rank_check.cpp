// SPDX-License-Identifier: Apache-2.0
#include "trainer/guard/rank_check.h"

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "trainer/core/whole_file.h"
#include "trainer/guard/cgroup_memory.h"

namespace paceline::train {
namespace {

std::uint64_t hash(const std::string& text) { return XXH3_64bits(text.data(), text.size()); }

// The value that most ranks have; among equally frequent values, that of the lowest rank.
std::uint64_t common(std::span<const RankFacts> facts, std::uint64_t RankFacts::*member) {
  std::uint64_t best = 0;
  std::ptrdiff_t votes = 0;
  for (const RankFacts& candidate : facts) {
    const std::ptrdiff_t count = std::ranges::count(facts, candidate.*member, member);
    if (count > votes) {
      votes = count;
      best = candidate.*member;
    }
  }
  return best;
}

}  // namespace

std::map<std::string, std::string> settings_by_name(const std::string& settings) {
  std::map<std::string, std::string> result;
  std::istringstream in(settings);
  for (std::string line; std::getline(in, line);) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) result[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return result;
}

std::uint64_t memory_available() {
  std::ifstream in("/proc/meminfo");
  std::string word;
  std::uint64_t host = ~std::uint64_t{0};
  while (in >> word) {
    if (word != "MemAvailable:") continue;
    std::uint64_t kibibytes = 0;
    in >> kibibytes;
    host = kibibytes << 10;
    break;
  }
  return std::min(host, cgroup_memory_left());
}

RankFacts facts_of_this_rank(const std::string& settings, std::uint64_t data, int ranks_on_host,
                             std::uint64_t memory_wanted) {
  RankFacts facts;
  gethostname(facts.host.data(), facts.host.size() - 1);
  facts.build = hash(read_file("/proc/self/exe"));
  facts.settings = hash(settings);
  facts.data = data;
  facts.ranks_on_host = ranks_on_host;
  facts.memory_left = memory_available();
  facts.memory_wanted = memory_wanted;
  return facts;
}

std::optional<Mismatch> first_mismatch(std::span<const RankFacts> facts) {
  const std::uint64_t build = common(facts, &RankFacts::build), data = common(facts, &RankFacts::data),
                      settings = common(facts, &RankFacts::settings);
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const RankFacts& f = facts[i];
    const auto mismatch = [&](const std::string& what) { return Mismatch{static_cast<int>(i), what}; };
    if (f.build != build) {
      return mismatch("another build of paceline-train than the other ranks have: install one on all hosts");
    }
    if (f.settings != settings) return Mismatch{static_cast<int>(i), "other options than the other ranks have", true};
    if (f.data != data) return mismatch("other data than the other ranks have: copy the same set to all hosts");
    const std::uint64_t wanted = f.memory_wanted * static_cast<std::uint64_t>(f.ranks_on_host);
    if (f.memory_left < wanted) {
      return mismatch(
          fmt::format("its host has {} MiB of memory left, and its {} ranks need {} more: lower ‹batch-size› "
                      "or ‹accumulate›, or start fewer ranks there",
                      f.memory_left >> 20, f.ranks_on_host, wanted >> 20));
    }
  }
  return std::nullopt;
}

std::string differing_settings(const std::string& here, const std::string& there) {
  const auto own = settings_by_name(here), other = settings_by_name(there);
  std::string text;
  for (const auto& [name, value] : own) {
    const auto found = other.find(name);
    const std::string their = found == other.end() ? "" : found->second;
    if (value == their) continue;
    text += fmt::format("{}{} {}, there {}", text.empty() ? "" : "; ", name, value.empty() ? "not given" : value,
                        their.empty() ? "not given" : their);
  }
  return text;
}

std::optional<Mismatch> check_ranks(Collectives& collectives, const RankFacts& own, const std::string& settings) {
  const auto ranks = static_cast<std::size_t>(collectives.size());
  std::vector<RankFacts> facts(ranks);
  collectives.allgather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(facts)));
  std::optional<Mismatch> mismatch = first_mismatch(facts);
  if (!mismatch || !mismatch->settings) return mismatch;

  // The hashes differ, so the ranks exchange the texts to find the options.
  constexpr std::size_t room = 8192;
  std::vector<char> text(room), texts(room * ranks);
  std::memcpy(text.data(), settings.data(), std::min(settings.size(), room - 1));
  collectives.allgather(std::as_bytes(std::span(text)), std::as_writable_bytes(std::span(texts)));
  const std::uint64_t usual = common(facts, &RankFacts::settings);
  const auto of = [&](std::size_t rank) { return std::string(texts.data() + rank * room); };
  const std::size_t other =
      static_cast<std::size_t>(std::ranges::find(facts, usual, &RankFacts::settings) - facts.begin());
  mismatch->what = fmt::format("other options than rank {} on {}: {}", other, facts[other].host.data(),
                               differing_settings(of(static_cast<std::size_t>(mismatch->rank)), of(other)));
  return mismatch;
}

}  // namespace paceline::train
