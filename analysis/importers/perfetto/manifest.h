// SPDX-License-Identifier: Apache-2.0
// Perfetto's manifest: a JSON file beside the traces of one run that relates their clocks
// (https://perfetto.dev/docs/reference/perfetto-manifest).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "analysis/importers/reader.h"

namespace paceline::analysis::perfetto {

// True of the text of a manifest, or of its begin.
bool is_manifest(std::string_view begin);

// What to add to the times of each file, by TraceFile::name, so that all are on one clock, in ns. Empty where the
// manifest does not relate all of the files, or relates other clocks than the time since boot, which the reader puts
// all times on. Throws Error where the text is not JSON. Cost: linear in the text, and entries times files.
std::map<std::string, std::int64_t> clock_offsets(std::string_view manifest, std::span<const TraceFile> files);

}  // namespace paceline::analysis::perfetto
