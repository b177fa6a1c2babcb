// SPDX-License-Identifier: Apache-2.0
// Names of trace files from a pattern: %h host, %r rank, %p process id, %q{VAR} an environment variable, %% a percent
// sign (the placeholders of nvprof and Nsight Systems).
//
// libc only: used inside the recorded program too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::record {

struct FileNameParts {
  const char* host = "";
  std::int32_t rank = -1;  // -1 gives "x"
  std::uint32_t pid = 0;
};

// Writes the name, NUL-terminated, and returns its length. Returns 0 if the pattern has an unknown or unfinished
// placeholder, or if the name is empty or does not fit. A '/' in the value of a placeholder (host, variable) becomes
// '_'.
std::size_t expand_file_name(const char* pattern, const FileNameParts& parts, char* out, std::size_t capacity) noexcept;

}  // namespace paceline::record
