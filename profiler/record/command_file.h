// SPDX-License-Identifier: Apache-2.0
// Checks whether the recorder can be loaded into a command.
#pragma once

#include <string>

namespace paceline::record {

// Returns the reason why it cannot be loaded, as a phrase ("is statically linked"), or "" if none is known. Searches
// PATH for the command as execvp does and reads its first bytes; for a script, those of its interpreter.
std::string why_not_recorded(const std::string& command);

}  // namespace paceline::record
