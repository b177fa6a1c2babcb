// The figures of a run that need the events of all ranks together.
#include "analysis/run/run_analysis.h"

namespace paceline::analysis {

RunAnalysis analyse_run(const Trace& trace, const std::string& path) {
  RunAnalysis run = analyse_run(summarise(trace), path);
  // A range that lost its end could take any time of the path.
  if (run.refused()) return run;
  const PhaseTable table(trace);
  run.critical_path = critical_path(table, dependency_graph(table));
  return run;
}

}  // namespace paceline::analysis
