#include "analysis/load/readers.h"

namespace paceline::analysis {

TraceReaders trace_readers() {
  static constexpr const TraceReader* table[] = {
      &pace_reader,
  };
  return table;
}

}  // namespace paceline::analysis
