// SPDX-License-Identifier: Apache-2.0
// How lists are written: of words, of ranks and of numbers.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace paceline::analysis {

// "a", "a and b", "a, b and c".
std::string list_text(const std::vector<std::string>& items);

// The items one after the other: "a, b".
std::string joined(const std::vector<std::string>& items, const std::string& separator = ", ");

// "rank 2", "ranks 0, 1 and 3"; only their number where they are more than `most_named`: "40 ranks".
std::string rank_list(const std::vector<int>& ranks, std::size_t most_named = 16);

// The same at the start of a sentence: "Rank 2", "Ranks 0 and 1".
std::string capitalised(std::string text);

// Sorted numbers, with neighbours drawn together: "3 to 8, 12 and 20". Only the first 8 stretches are written; "17
// more" counts the numbers in the others.
std::string number_list(const std::vector<std::int64_t>& numbers);

// Numbers as Linux lists CPUs: "0-2,8".
std::string cpu_list(const std::set<unsigned>& numbers);

// Words of a sentence; a number and its unit are one.
std::size_t word_count(const std::string& text);

std::string without_full_stop(std::string text);

}  // namespace paceline::analysis
