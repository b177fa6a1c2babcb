// SPDX-License-Identifier: Apache-2.0
#include "analysis/text/lists.h"

#include <sstream>

#include <fmt/format.h>

#include "analysis/text/numbers.h"

namespace paceline::analysis {

std::string list_text(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 == items.size() ? " and " : ", ";
    text += items[i];
  }
  return text;
}

std::string joined(const std::vector<std::string>& items, const std::string& separator) {
  return fmt::format("{}", fmt::join(items, separator));
}

std::string rank_list(const std::vector<int>& ranks, std::size_t most_named) {
  if (ranks.size() > most_named) return plural(ranks.size(), "rank", "ranks");
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(std::to_string(rank));
  return (ranks.size() == 1 ? "rank " : "ranks ") + list_text(names);
}

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string number_list(const std::vector<std::int64_t>& numbers) {
  constexpr std::size_t most_stretches = 8;
  std::vector<std::string> parts;
  std::size_t i = 0;
  while (i < numbers.size() && parts.size() < most_stretches) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    parts.push_back(last == i       ? fmt::format("{}", numbers[i])
                    : last == i + 1 ? fmt::format("{}, {}", numbers[i], numbers[last])
                                    : fmt::format("{} to {}", numbers[i], numbers[last]));
    i = last + 1;
  }
  if (i < numbers.size()) parts.push_back(fmt::format("{} more", numbers.size() - i));
  return list_text(parts);
}

std::string cpu_list(const std::set<unsigned>& numbers) {
  std::vector<std::string> stretches;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const unsigned first = *at;
    unsigned last = first;
    while (++at != numbers.end() && *at == last + 1) last = *at;
    stretches.push_back(first == last ? std::to_string(first) : fmt::format("{}-{}", first, last));
  }
  return joined(stretches, ",");
}

std::size_t word_count(const std::string& text) {
  std::istringstream in(text);
  std::string last;
  std::size_t count = 0;
  for (std::string word; in >> word; last = word) {
    const std::string unit = word.substr(0, word.find_first_of(",.;:)"));
    const bool after_number = !last.empty() && last.back() >= '0' && last.back() <= '9';
    if (!after_number || (unit != "s" && unit != "ms" && unit != "%")) ++count;
  }
  return count;
}

std::string without_full_stop(std::string text) {
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace paceline::analysis
