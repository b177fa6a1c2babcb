// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/output/file_header.h"

#define XXH_INLINE_ALL
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "profiler/format/header.h"
#include "profiler/format/recorder_lock.h"
#include "profiler/inject/buffer/clock.h"
#include "profiler/inject/system/lineage.h"
#include "profiler/inject/system/settings.h"
#include "profiler/inject/system/sysfs.h"
#include "profiler/launch/environment.h"
#include "profiler/launch/launcher.h"

namespace paceline::inject {
namespace {

// The texts of the header; static, because the recorder may be opened on a thread with a small stack.
struct HeaderTexts {
  char host[256];
  char boot_id[128];
  char job[256];
  char launch[256];
  char directory[4096];
  char command[64 * 1024];
  char environment[16 * 1024];
  char ancestors[2048];
};
HeaderTexts texts;

// When the system started this process, to 10 ms. Returns 0 if /proc is missing or its value is impossible.
std::int64_t process_start_utc_ns(std::uint64_t start, std::int64_t utc_ns) {
  const std::int64_t ticks_a_second = sysconf(_SC_CLK_TCK);
  if (start == 0 || ticks_a_second <= 0) return 0;
  const std::int64_t age_ns =
      true_ns(CLOCK_BOOTTIME) - static_cast<std::int64_t>(start) * (1'000'000'000 / ticks_a_second);
  // In a container the clock since boot may have an offset that /proc does not have.
  return age_ns > -1'000'000'000 && age_ns < format::longest_process_age_ns ? utc_ns - age_ns : 0;
}

// Writes the ancestors as a list of PID:START, or PID:START:NAMESPACE in another PID namespace, each with a zero byte
// behind it, and returns its length.
std::size_t ancestors_text(const Lineage& lineage, char* out, std::size_t capacity) {
  std::size_t size = 0;
  for (int step = 0; step < lineage.ancestor_count; ++step) {
    const ProcessName& ancestor = lineage.ancestors[step];
    char other_namespace[32] = "";
    if (ancestor.pid_namespace != lineage.self.pid_namespace) {
      snprintf(other_namespace, sizeof other_namespace, ":%llu",
               static_cast<unsigned long long>(ancestor.pid_namespace));
    }
    const int length = snprintf(out + size, capacity - size, "%d:%llu%s", static_cast<int>(ancestor.pid),
                                static_cast<unsigned long long>(ancestor.start), other_namespace);
    if (length < 0 || size + static_cast<std::size_t>(length) + 1 > capacity) break;
    size += static_cast<std::size_t>(length) + 1;
  }
  return size;
}

// The variables of the environment that describe how a job ran. The others may contain secrets and are left out.
bool describes_job(const char* variable) {
  static const char* const described[] = {"OMP_NUM_THREADS=", "OMP_PROC_BIND=",        "OMP_PLACES=",
                                          "MKL_NUM_THREADS=", "CUDA_VISIBLE_DEVICES=", "NCCL_",
                                          "OMPI_COMM_WORLD_", "OMPI_MCA_btl",          "SLURM_JOB_ID=",
                                          "SLURM_JOB_NAME=",  "SLURM_NNODES=",         "SLURM_NTASKS=",
                                          "PBS_JOBID=",       "PBS_JOBNAME="};
  for (const char* prefix : described) {
    if (strncmp(variable, prefix, strlen(prefix)) == 0) return true;
  }
  return false;
}

std::size_t job_environment(char* out, std::size_t capacity) {
  std::size_t size = 0;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::size_t length = strlen(*variable) + 1;
    if (!describes_job(*variable) || size + length > capacity) continue;
    memcpy(out + size, *variable, length);
    size += length;
  }
  return size;
}

}  // namespace

std::size_t fill_header(MappedFile& file, void* out, const FileStart& start) {
  const record::LaunchedRank launched = record::launched_rank();
  gethostname(texts.host, sizeof texts.host - 1);
  read_file("/proc/sys/kernel/random/boot_id", texts.boot_id, sizeof texts.boot_id);
  if (clock_state.test_domain[0] != '\0') {
    snprintf(texts.boot_id, sizeof texts.boot_id, "test-%s", clock_state.test_domain);
  }
  record::job_identity(texts.job, sizeof texts.job);
  record::launch_identity(texts.launch, sizeof texts.launch);
  file.job = XXH3_64bits(texts.job, strlen(texts.job));
  file.clock_domain =
      XXH3_64bits_withSeed(texts.host, strlen(texts.host), XXH3_64bits(texts.boot_id, strlen(texts.boot_id))) +
      static_cast<std::uint32_t>(clock_state.source);
  if (getcwd(texts.directory, sizeof texts.directory) == nullptr) texts.directory[0] = '\0';

  format::HeaderFacts facts;
  if (getrandom(&facts.file_id, sizeof facts.file_id, GRND_NONBLOCK) != sizeof facts.file_id) facts.file_id = ticks();
  facts.clock_source = clock_state.source;
  facts.pid = static_cast<std::uint32_t>(getpid());
  facts.ticks_per_second = clock_state.ticks_per_second;
  facts.start_ticks = start.ticks;
  facts.start_utc_ns = start.utc_ns;
  const Lineage& lineage = complete_lineage();
  facts.process_start_utc_ns = process_start_utc_ns(lineage.self.start, system_ns(CLOCK_REALTIME));
  facts.process_start = lineage.self.start;
  facts.pid_namespace = lineage.self.pid_namespace;
  facts.heartbeat_s = format::heartbeat_s;
  facts.ancestors = {texts.ancestors, ancestors_text(lineage, texts.ancestors, sizeof texts.ancestors)};
  facts.forked = is_forked_worker() ? lineage.forked : 0;
  facts.utc_error_us = utc_error_us();
  facts.rank = launched.rank;
  facts.world_size = launched.world_size;
  facts.local_rank = launched.local_rank;
  facts.live_bytes = std::uint64_t{file.chunks} * format::chunk_bytes;
  facts.host = texts.host;
  facts.boot_id = texts.boot_id;
  facts.command = {texts.command, read_file("/proc/self/cmdline", texts.command, sizeof texts.command)};
  facts.directory = texts.directory;
  facts.job = texts.job;
  facts.launch = texts.launch;
  facts.environment = {texts.environment, job_environment(texts.environment, sizeof texts.environment)};
  facts.set = text_or(record::env_set, "");
  char parent[16] = "";
  if (start.recorded_parent > 0) snprintf(parent, sizeof parent, "%d", static_cast<int>(start.recorded_parent));
  facts.parent = parent;
  return format::make_header(facts, out, format::max_header_bytes);
}

const char* header_host() { return texts.host; }

}  // namespace paceline::inject
