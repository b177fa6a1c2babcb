// SPDX-License-Identifier: Apache-2.0
// The table of readers: one row for each trace format.
#pragma once

#include <span>

#include "analysis/importers/reader.h"

namespace paceline::analysis {

using TraceReaders = std::span<const TraceReader* const>;

// The table. The first reader that recognises a file reads it.
TraceReaders trace_readers();

}  // namespace paceline::analysis
