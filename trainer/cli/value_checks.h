// SPDX-License-Identifier: Apache-2.0
// Checks of numbers. CLI11's own checks accept text that is not a number and truncate numbers that are too large.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class Validator;
}

namespace paceline::train {

// Accepts decimal digits alone, for a number from least to most.
CLI::Validator whole(std::uint64_t least, std::uint64_t most);

// Accepts a finite number from least to most.
CLI::Validator number(double least, double most);

// Accepts one of these texts.
CLI::Validator one_of(std::vector<std::string> texts);

// Accepts a number above 0 that is finite as a float.
CLI::Validator positive();

// This program's name for a number type: f32 for fp32, f16 for fp16; other names are unchanged.
std::string type_name_of(const std::string& text);

}  // namespace paceline::train
