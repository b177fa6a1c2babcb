// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/mpi/session.h"

#include <stdio.h>
#include <stdlib.h>

#include <string_view>

#include "profiler/inject/buffer/names.h"
#include "profiler/inject/buffer/session.h"
#include "profiler/inject/buffer/writer.h"
#include "profiler/inject/process/lifecycle.h"
#include "profiler/inject/sources/clock_exchange/exchange.h"
#include "profiler/inject/sources/mpi/communicators.h"
#include "profiler/inject/sources/mpi/requests.h"
#include "profiler/inject/sources/mpi/static_library.h"
#include "profiler/inject/sources/sources.h"
#include "profiler/inject/sources/watch/hang.h"
#include "profiler/inject/system/mapping_guard.h"
#include "profiler/inject/system/say.h"
#include "profiler/launch/environment.h"
#include "profiler/launch/launcher.h"

namespace paceline::inject {
namespace {

MpiDepth found_depth = MpiDepth::nothing;

std::atomic<int> spawned{0};  // number of processes spawned by this one together with its communicator

bool clocks_compared = false, by_sessions = false, has_world = false;

// MPI's own answer replaces the rank that the launcher's variables gave.
void correct_rank() {
  int rank = -1, size = -1;
  if (mpi.comm_rank(mpi.world, &rank) == 0 && mpi.comm_size(mpi.world, &size) == 0) record_rank(rank, size, true);
}

// Processes that MPI_Comm_spawn started have ranks of their own, which must not be mistaken for those of the first
// world.
void note_whether_spawned() {
  int (*get_parent)(void*) = reinterpret_cast<int (*)(void*)>(find_in_mpi("PMPI_Comm_get_parent"));
  Handle parent = 0;
  if (get_parent == nullptr || get_parent(&parent) != 0 || !mpi.is_comm(mpi.handle(parent))) return;
  record_setting("spawned_by_mpi", "1");
}

// At the end of a recording: one line if an MPI launcher started several ranks and no call to MPI was seen, unless
// there was a line about it at the start (static_library.h), or if there were sessions only. PyTorch's collectives need
// no MPI, and its hooks say themselves what they did not see.
void report_missing_mpi() {
  if (const int count = spawned.load(std::memory_order_relaxed); count > 0) {
    say("MPI_Comm_spawn started %d process%s, which the traces of this run do not show", count, count == 1 ? "" : "es");
  }
  if (by_sessions && !has_world && session.file.header->rank <= 0) {  // once in a job
    say("MPI was initialised with sessions only (MPI_Session_init): the times of its calls are recorded, not bytes and "
        "communicators");
  }
  if (found_depth != MpiDepth::nothing || session.file.header->rank != 0) return;  // once in a job
  if (getenv(record::env_pytorch) != nullptr) return;
  for (const char* launcher : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* ranks = getenv(launcher);
    if (ranks == nullptr || atoi(ranks) < 2 || has_static_mpi()) continue;
    say("%s ranks were started, but no call of MPI was seen: a program that links MPI statically, or finds its "
        "functions with dlsym, hides its calls; link MPI's shared library to record them",
        ranks);
    return;
  }
}

// Calls of a forked child, or after MPI_Finalize, pass through.
void ask_mpi_nothing() { mpi_depth.store(MpiDepth::nothing, std::memory_order_release); }

void compare_clocks() {
  if (clocks_compared) return;
  clocks_compared = true;
  find_clocks();
  exchange_clocks(ExchangePhase::at_init);
}

}  // namespace

void before_init() {
  constexpr std::int64_t a_minute_ns = 60'000'000'000;  // no signal handler may call MPI_Init
  if (found_depth != MpiDepth::nothing || !open_recorder(a_minute_ns)) return;
  suspend_mapping_guard();
  char version[256];
  found_depth = open_mpi_library(version, sizeof version);
  if (found_depth == MpiDepth::times && session.file.header->rank <= 0) {  // once in a job
    say("only the times of MPI calls are recorded, not bytes and communicators, because this MPI library is unknown "
        "(Open "
        "MPI, MPICH and those with MPICH's ABI are known): %.80s",
        version[0] != '\0' ? version : "it gives no name");
  }
  record_setting("mpi_library", version);
  publish_clock();
  // Communicators can be queried only after MPI_Init. Until then only times are recorded.
  mpi_depth.store(MpiDepth::times, std::memory_order_release);
}

void after_init() {
  resume_mapping_guard();
  if (found_depth == MpiDepth::nothing || !file_is_open()) return;
  if (found_depth == MpiDepth::full && mpi_depth.load(std::memory_order_relaxed) != MpiDepth::full) {
    note_predefined_communicators();
    ask_for_hangs({.write_communicator = write_communicator_name, .find_posted = find_posted_collective});
    correct_rank();
    note_whether_spawned();
    mpi_depth.store(MpiDepth::full, std::memory_order_release);
    note_progress();
  }
  has_world = true;
  compare_clocks();
}

void note_spawned(Handle children) {
  int rank = -1, count = 0;
  if (!mpi.is_comm(children) || mpi.comm_rank(children, &rank) != 0 || rank != 0) return;  // one rank counts
  if (mpi.comm_remote_size(children, &count) != 0 || count <= 0) return;
  char text[16];
  snprintf(text, sizeof text, "%d", spawned.fetch_add(count, std::memory_order_relaxed) + count);
  record_setting("spawned_processes", text);
}

void after_session_init() {
  resume_mapping_guard();
  if (found_depth == MpiDepth::nothing || !file_is_open()) return;
  by_sessions = true;
  compare_clocks();
}

// The ranks that are asked still answer, because no rank leaves MPI_Finalize before all have entered it.
void before_finalize() {
  end_hang_watch();
  if (file_is_open()) exchange_clocks(ExchangePhase::at_finalize);
}

void after_finalize() { ask_mpi_nothing(); }

const Source mpi_source = {.closed = report_missing_mpi, .reset_in_child = ask_mpi_nothing};

}  // namespace paceline::inject

// Called by libpaceline-nvtx.so (nvtx_entry.c) where a library uses NVTX and MPI and the recorder is not preloaded.
extern "C" __attribute__((visibility("default"))) void paceline_report_unseen_mpi() {
  static std::atomic<bool> reported{false};
  if (reported.exchange(true) || paceline::record::launched_rank().rank > 0) return;
  paceline::inject::say(
      "a library with MPI is in a namespace of its own (dlmopen), or LD_PRELOAD was lost: its MPI "
      "calls are not recorded");
}
