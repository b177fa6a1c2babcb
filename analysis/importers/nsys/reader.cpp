// Reads SQLite exports of Nsight Systems ("nsys export --type sqlite"), schemas 2 and 3. Tables and columns that an
// export does not have are normal.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <tuple>

#include "analysis/importers/main_thread.h"
#include "analysis/importers/nsys/import.h"
#include "analysis/importers/reader.h"
#include "analysis/trace/parallel.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace nsys_files {

bool recognises(const TraceFile& file) {
  try {
    if (!is_sqlite_file(file.path)) return false;
    const Database database(file.path, file.name);
    if (!database.has("StringIds")) return false;
    for (const char* table : {"META_DATA_EXPORT", "EXPORT_META_DATA", "TARGET_INFO_SESSION_START_TIME", "NVTX_EVENTS",
                              "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"}) {
      if (database.has(table)) return true;
    }
  } catch (const std::exception&) {
  }
  return false;
}

Trace read(std::span<const TraceFile> files, const Progress& progress) {
  TraceBuilder run;
  std::mutex mutex;
  std::vector<std::vector<std::string>> notes(files.size());
  std::vector<std::string> failures(files.size());
  constexpr std::uint64_t steps = 100;
  ProgressCounter counter(progress, files.size() * steps);
  parallel_for(files.size(), [&](std::size_t i) {
    std::optional<Database> database;
    std::optional<NsysImport> import;
    try {
      database.emplace(files[i].path, files[i].name);
      import.emplace(*database, [&](Rank rank) -> RankBuilder& {
        const std::scoped_lock lock(mutex);
      return run.add_rank(std::move(rank));
    });
    } catch (const Error& error) {
    failures[i] = error.what();
    return;
    }
    std::uint64_t reported = 0;
    import->read([&](double share) {
    const auto now = static_cast<std::uint64_t>(share * steps);
    counter.add(now - reported);
    reported = now;
    });
    notes[i] = import->notes();
});
Trace trace = run.finish();
std::erase(failures, "");
if (trace.ranks.empty()) {
  throw Error(!failures.empty()
                  ? failures.front()
                  : fmt::format("{}: the export has no events: record with nsys profile --trace=cuda,nvtx,mpi",
                                files.front().name));
}
std::ranges::stable_sort(trace.ranks, {}, [](const Rank& rank) { return std::tie(rank.rank, rank.path, rank.pid); });
const int highest = trace.ranks.back().rank;
for (Rank& rank : trace.ranks) rank.world_size = std::max(rank.world_size, highest + 1);
trace.notes = std::move(failures);
for (const std::vector<std::string>& of_file : notes) {
  trace.notes.insert(trace.notes.end(), of_file.begin(), of_file.end());
}
choose_main_threads(trace);
return trace;
}

}  // namespace nsys_files

const TraceReader nsys_reader{"nsys", nsys_files::recognises, nsys_files::read};

}  // namespace paceline::analysis
