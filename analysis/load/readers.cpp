// SPDX-License-Identifier: Apache-2.0
#include "analysis/load/readers.h"

namespace paceline::analysis {

TraceReaders trace_readers() {
  static constexpr const TraceReader* table[] = {
#define PACELINE_READER(name) &name##_reader,
#include "analysis/importers/readers.def"
#undef PACELINE_READER
  };
  return table;
}

}  // namespace paceline::analysis
