// Checks whether the recorder can be loaded into a command.
#pragma once

#include <string>

namespace paceline::record {

// Returns the reason why it cannot, as a phrase ("is statically linked"), or "" if there is no known reason. Searches
// PATH for the command as execvp does and reads its first bytes; for a script, those of its interpreter.
std::string why_not_recorded(const std::string& command);

}  // namespace paceline::record
