// Names from a trace as they are printed: on one line, and not too long.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace paceline::analysis {

// The name with control characters, bidirectional controls and bytes that are not UTF-8 as "�", and at most `most`
// characters: a longer one loses its middle, for "…". `most` is at least 3.
std::string label(std::string_view name, std::size_t most);

}  // namespace paceline::analysis
