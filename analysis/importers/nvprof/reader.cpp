// Reads the databases of nvprof (nvprof -o FILE), the predecessor of Nsight Systems. A file is one rank.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/importers/main_thread.h"
#include "analysis/importers/nvprof/import.h"
#include "analysis/importers/reader.h"
#include "analysis/trace/parallel.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace nvprof_files {

bool recognises(const TraceFile& file) {
  try {
    if (!is_sqlite_file(file.path)) return false;
    const Database database(file.path, file.name);
    return database.has("StringTable", "_id_") &&
           (database.has("CUPTI_ACTIVITY_KIND_RUNTIME") || database.has("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL") ||
            database.has("CUPTI_ACTIVITY_KIND_KERNEL"));
  } catch (const std::exception&) {
    return false;
  }
}

Trace read(std::span<const TraceFile> files, const Progress& progress) {
  TraceBuilder run;
  std::vector<RankBuilder*> ranks;
  for (const TraceFile& file : files) {
    Rank info;
    info.rank = unknown_rank;
    info.path = file.name;
    info.format = "nvprof";
    ranks.push_back(&run.add_rank(std::move(info)));
  }
  std::vector<std::vector<std::string>> notes(files.size());
  std::vector<std::string> failures(files.size());
  constexpr std::uint64_t steps = 100;
  ProgressCounter counter(progress, files.size() * steps);
  parallel_for(files.size(), [&](std::size_t i) {
    std::optional<Database> database;
    try {
      database.emplace(files[i].path, files[i].name);
    } catch (const Error& error) {
      failures[i] = error.what();
      return;
    }
    NvprofImport import(*database, *ranks[i]);
    std::uint64_t reported = 0;
    import.read([&](double share) {
      const auto now = static_cast<std::uint64_t>(share * steps);
    counter.add(now - reported);
    reported = now;
  });
  ranks[i]->finish();
  notes[i] = import.notes();
});
Trace trace = run.finish();
std::erase_if(trace.ranks, [](const Rank& rank) { return rank.tracks.empty(); });
std::erase(failures, "");
if (trace.ranks.empty()) {
  throw Error(!failures.empty()
                  ? failures.front()
                  : fmt::format("{}: the database has no events: give one that nvprof -o made", files.front().name));
}
trace.notes = std::move(failures);
for (const std::vector<std::string>& of_file : notes) {
  trace.notes.insert(trace.notes.end(), of_file.begin(), of_file.end());
}
choose_main_threads(trace);
return trace;
}

}  // namespace nvprof_files

const TraceReader nvprof_reader{"nvprof", nvprof_files::recognises, nvprof_files::read};

}  // namespace paceline::analysis
