// The header of a trace file, which describes its process.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/inject/output/output_file.h"

namespace paceline::inject {

// Writes the header of a file with `file.chunks` chunks into `out` (format::max_header_bytes bytes). Returns its
// length, or 0 if it does not fit. Sets file.job and file.clock_domain.
std::size_t fill_header(OutputFile& file, void* out, std::uint64_t start_ticks, std::int64_t start_utc_ns);

// The host name in the header that was written last.
const char* header_host();

}  // namespace paceline::inject
