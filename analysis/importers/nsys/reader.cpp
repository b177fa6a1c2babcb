// SPDX-License-Identifier: Apache-2.0
// Reads SQLite exports of Nsight Systems ("nsys export --type sqlite"), schemas 2 and 3. Tables and columns that an
// export does not have are normal.
#include <algorithm>
#include <mutex>
#include <tuple>

#include "analysis/importers/main_thread.h"
#include "analysis/importers/nsys/import.h"
#include "analysis/importers/sqlite/read_files.h"

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
  Trace trace =
      read_databases(files, progress, run, "the export has no events: record with nsys profile --trace=cuda,nvtx,mpi",
                     [&](std::size_t, Database& database, const ShareDone& done) {
                       NsysImport import(database, [&](Rank rank) -> RankBuilder& {
                         const std::scoped_lock lock(mutex);
                         return run.add_rank(std::move(rank));
                       });
                       import.read(done);
                       return import.notes();
                     });
  std::ranges::stable_sort(trace.ranks, {}, [](const Rank& rank) { return std::tie(rank.rank, rank.path, rank.pid); });
  const int highest = trace.ranks.back().rank;
  for (Rank& rank : trace.ranks) rank.world_size = std::max(rank.world_size, highest + 1);
  choose_main_threads(trace);
  return trace;
}

}  // namespace nsys_files

const TraceReader nsys_reader{"nsys", nsys_files::recognises, nsys_files::read};

}  // namespace paceline::analysis
