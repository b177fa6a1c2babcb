// SPDX-License-Identifier: Apache-2.0
// Reads "spans", a text format. The first line is "spans 1". Each further line is one slice: the rank, the begin and
// the end in nanoseconds, and the name.
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "analysis/importers/reader.h"
#include "analysis/trace/builder.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace spans {

bool recognises(const TraceFile& file) {
  char first[8] = {};
  std::ifstream(file.path, std::ios::binary).read(first, sizeof first);
  return std::string_view(first, sizeof first) == "spans 1\n";
}

Trace read(std::span<const TraceFile> files, const Progress&) {
  TraceBuilder run;
  std::map<int, TrackBuilder*> threads;  // by rank
  for (const TraceFile& file : files) {
    std::ifstream in(file.path);
    std::string line, name;
    std::getline(in, line);  // "spans 1"
    for (int number = 2; std::getline(in, line); ++number) {
      int rank = 0;
      std::int64_t begin_ns = 0, end_ns = 0;
      if (!(std::istringstream(line) >> rank >> begin_ns >> end_ns >> name) || end_ns < begin_ns) {
        throw Error(
            fmt::format("{}:{}: expected RANK BEGIN END NAME with BEGIN <= END: correct this line", file.name, number));
      }
      TrackBuilder*& thread = threads[rank];
      if (thread == nullptr) {
        RankBuilder& builder = run.add_rank(rank);
        builder.info().path = file.name;
        builder.info().format = "spans";
        thread = &builder.add_main_thread();
      }
      thread->add_slice(begin_ns, end_ns, name);
    }
  }
  return run.finish();
}

}  // namespace spans

extern const TraceReader spans_reader;  // PACELINE_READER(spans) in readers.def declares it
const TraceReader spans_reader{"spans", spans::recognises, spans::read};

}  // namespace paceline::analysis
