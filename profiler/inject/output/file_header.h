// SPDX-License-Identifier: Apache-2.0
// The header of a trace file, which describes its process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "profiler/inject/buffer/mapped_file.h"

namespace paceline::inject {

struct FileStart {
  std::uint64_t ticks = 0;  // the file's time zero, and the same moment in UTC
  std::int64_t utc_ns = 0;
  pid_t recorded_parent = 0;  // the recorded process whose child this one is; 0: none
};

// Writes the header of a file with `file.chunks` chunks into `out` (format::max_header_bytes bytes). Returns its
// length, or 0 if it does not fit. Sets file.job and file.clock_domain.
std::size_t fill_header(MappedFile& file, void* out, const FileStart& start);

// The host name in the header that was written last.
const char* header_host();

}  // namespace paceline::inject
