// Which numbers an option takes: CLI11's own checks let what is not a number pass, and cut what is too large.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class Validator;
}

namespace paceline::train {

// Decimal digits alone, from least to most.
CLI::Validator whole(std::uint64_t least, std::uint64_t most);

// A finite number from least to most.
CLI::Validator number(double least, double most);

// A number above 0 that is still finite as a float.
CLI::Validator positive();

// The name that this program has for a type of numbers: f32 for fp32, f16 for fp16; other names as they are.
std::string type_name_of(const std::string& text);

}  // namespace paceline::train
