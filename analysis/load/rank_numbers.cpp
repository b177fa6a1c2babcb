// SPDX-License-Identifier: Apache-2.0
#include "analysis/load/rank_numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "analysis/text/lists.h"
#include "profiler/format/error.h"

namespace paceline::analysis {

namespace rank_numbering {

constexpr int most_ranks = 10'000'000;  // what a damaged file holds beyond that is no rank

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view last_part(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

// The number that begins at the text's first character.
std::optional<int> leading_number(std::string_view text) {
  int number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || number < 0 || number >= most_ranks) return std::nullopt;
  return number;
}

// A name cut into its numbers and the text around them.
struct Pieces {
  std::vector<std::string> texts;
  std::vector<std::string_view> numbers;
};

Pieces pieces_of(std::string_view name) {
  Pieces pieces;
  pieces.texts.emplace_back();
  for (std::size_t at = 0; at < name.size();) {
    if (!is_digit(name[at])) {
      pieces.texts.back() += name[at++];
      continue;
    }
    const std::size_t begin = at;
    while (at < name.size() && is_digit(name[at])) ++at;
    pieces.numbers.push_back(name.substr(begin, at - begin));
    pieces.texts.emplace_back();
  }
  return pieces;
}

void number_the_unknown(std::vector<Rank>& ranks) {
  std::vector<Rank*> unknown;
  std::set<std::string> paths;
  for (Rank& rank : ranks) {
    if (rank.rank >= 0 && rank.rank < most_ranks) continue;
    unknown.push_back(&rank);
    paths.insert(rank.path);
  }
  if (unknown.empty()) return;
  if (paths.size() == 1 && unknown.size() == ranks.size() && unknown.size() > 1) {
    for (std::size_t i = 0; i < unknown.size(); ++i) unknown[i]->rank = static_cast<int>(i);
    return;
  }
  std::vector<Rank*> nameless;
  std::vector<std::string> nameless_paths;
  for (Rank* rank : unknown) {
    if (const auto number = rank_in_name(rank->path)) {
      rank->rank = *number;
    } else {
      nameless.push_back(rank);
      nameless_paths.push_back(rank->path);
    }
  }
  if (nameless.empty()) return;
  if (ranks.size() == 1) {
    ranks.front().rank = 0;
    return;
  }
  if (const auto several = std::ranges::adjacent_find(nameless_paths); several != nameless_paths.end()) {
    throw Error(fmt::format("{}: several of its processes have no rank: read this file without the others", *several));
  }
  const std::vector<int> numbers = numbers_that_differ(nameless_paths);
  if (numbers.empty() || nameless.size() < ranks.size()) {
    throw Error(
        fmt::format("{}: {} not hold the number of {} rank, and neither {}: rename the files so that each name "
                    "holds the word rank and the number (rank-0, rank-1, …)",
                    fmt::join(nameless_paths, ", "), nameless.size() > 1 ? "the files do" : "the file does",
                    nameless.size() > 1 ? "their" : "its", nameless.size() > 1 ? "do their names" : "does its name"));
  }
  for (std::size_t i = 0; i < nameless.size(); ++i) nameless[i]->rank = numbers[i];
}

}  // namespace rank_numbering

std::optional<int> rank_in_name(std::string_view path) {
  using namespace rank_numbering;
  std::string name(last_part(path));
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const std::string_view view = name;
  for (std::size_t at = view.find("rank"); at != std::string_view::npos; at = view.find("rank", at + 1)) {
    std::size_t number = at + 4;
    if (number < view.size() && std::string_view("-_.= ").find(view[number]) != std::string_view::npos) ++number;
    if (const auto found = leading_number(view.substr(std::min(number, view.size())))) return found;
  }
  return std::nullopt;
}

std::vector<int> numbers_that_differ(const std::vector<std::string>& paths) {
  using namespace rank_numbering;
  std::vector<Pieces> pieces;
  for (const std::string& path : paths) pieces.push_back(pieces_of(last_part(path)));
  std::optional<std::size_t> place;
  for (const Pieces& other : pieces) {
    if (other.texts != pieces.front().texts) return {};
    for (std::size_t i = 0; i < other.numbers.size(); ++i) {
      if (other.numbers[i] == pieces.front().numbers[i]) continue;
      if (place && *place != i) return {};
      place = i;
    }
  }
  if (!place) return {};
  std::vector<int> numbers;
  std::set<int> distinct;
  for (const Pieces& one : pieces) {
    const auto number = leading_number(one.numbers[*place]);
    // Process ids and dates are no ranks.
    if (!number || static_cast<std::size_t>(*number) > 4 * paths.size() + 16 || !distinct.insert(*number).second) {
      return {};
    }
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<Rank> take_duplicate_ranks(Trace& trace) {
  rank_numbering::number_the_unknown(trace.ranks);
  std::set<int> numbers;
  std::vector<Rank> kept, duplicates;
  for (Rank& rank : trace.ranks) {
    (numbers.insert(rank.rank).second ? kept : duplicates).push_back(std::move(rank));
  }
  trace.ranks = std::move(kept);
  return duplicates;
}

void number_ranks(Trace& trace) {
  rank_numbering::number_the_unknown(trace.ranks);
  std::ranges::stable_sort(trace.ranks, {}, &Rank::rank);
  std::vector<std::int64_t> present;
  int world_size = static_cast<int>(trace.ranks.size());
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    const Rank& rank = trace.ranks[r];
    if (r > 0 && rank.rank == trace.ranks[r - 1].rank) {
      throw Error(fmt::format("{} and {} both hold rank {}: give only one of them", trace.ranks[r - 1].path, rank.path,
                              rank.rank));
    }
    present.push_back(rank.rank);
    world_size = std::max(world_size, rank.rank + 1);
    if (rank.world_size <= rank_numbering::most_ranks) world_size = std::max(world_size, rank.world_size);
  }
  for (Rank& rank : trace.ranks) rank.world_size = world_size;
  if (present.size() > 1 && static_cast<std::size_t>(world_size) > present.size()) {
    trace.notes.push_back(fmt::format("{} of {} ranks were given ({}): no figure covers the others", present.size(),
                                      world_size, number_list(present)));
  }
}

}  // namespace paceline::analysis
