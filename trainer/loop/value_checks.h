// Which numbers an option takes: CLI11's own checks let what is not a number pass, and cut what is too large.
#pragma once

#include <cstdint>

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

}  // namespace paceline::train
