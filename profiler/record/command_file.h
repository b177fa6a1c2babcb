// Whether the recorder can be loaded into a command at all.
#pragma once

#include <string>

namespace paceline::record {

// Why not, as a phrase ("is statically linked"); "" where nothing speaks against it, or nothing is known. Looks the
// command up in PATH as execvp does, and reads its first bytes; of a script, those of its interpreter.
std::string why_not_recorded(const std::string& command);

}  // namespace paceline::record
