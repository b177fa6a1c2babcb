// SPDX-License-Identifier: Apache-2.0
// Compressed output.
#pragma once

#include <cstdio>

namespace paceline::analysis {

// A file whose contents are written to `out` in gzip's format. Its fclose() writes the end and leaves `out` open.
// Returns nullptr where there is no memory. Errors of `out` become errors of the file, with errno as `out` left it.
std::FILE* gzip_onto(std::FILE* out);

}  // namespace paceline::analysis
