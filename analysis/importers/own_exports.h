// SPDX-License-Identifier: Apache-2.0
// How readers know what Paceline itself exported, so that a trace that was exported comes back the same.
#pragma once

#include <string_view>

namespace paceline::analysis {

// The creator of an OTF2 archive that Paceline wrote. Its regions are described as "domain / category".
inline constexpr std::string_view otf2_creator = "paceline export";

}  // namespace paceline::analysis
