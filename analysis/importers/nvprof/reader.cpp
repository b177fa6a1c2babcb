// SPDX-License-Identifier: Apache-2.0
// Reads the databases of nvprof (nvprof -o FILE), the predecessor of Nsight Systems. A file is one rank.
#include "analysis/importers/main_thread.h"
#include "analysis/importers/nvprof/import.h"
#include "analysis/importers/sqlite/read_files.h"

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
  Trace trace = read_databases(files, progress, run, "the database has no events: give one that nvprof -o made",
                               [&](std::size_t file, Database& database, const ShareDone& done) {
                                 NvprofImport import(database, *ranks[file]);
                                 import.read(done);
                                 ranks[file]->finish();
                                 return import.notes();
                               });
  choose_main_threads(trace);
  return trace;
}

}  // namespace nvprof_files

const TraceReader nvprof_reader{"nvprof", nvprof_files::recognises, nvprof_files::read};

}  // namespace paceline::analysis
