// SPDX-License-Identifier: Apache-2.0
#include "profiler/launch/launcher.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/format/process.h"
#include "profiler/launch/environment.h"

namespace paceline::record {
namespace {

// The value of a variable that is set and not empty, else null.
const char* variable(const char* name) noexcept {
  const char* value = getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

std::int32_t number(const char* name) noexcept {
  const char* value = variable(name);
  if (value == nullptr) return -1;
  char* end = nullptr;
  const long parsed = strtol(value, &end, 10);
  return *end == '\0' && parsed >= 0 && parsed <= INT32_MAX ? static_cast<std::int32_t>(parsed) : -1;
}

struct Launcher {
  const char *rank, *world_size, *local_rank;
};
constexpr Launcher launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
    {"PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK"},
};

std::size_t length_written(int printed, std::size_t capacity) noexcept {
  if (printed <= 0 || capacity == 0) return 0;
  const auto length = static_cast<std::size_t>(printed);
  return length < capacity ? length : capacity - 1;
}

// The process that started this one, by id and start time, for launchers that give no job: all ranks of one host have
// the same parent. Empty if /proc is missing.
std::size_t parent_identity(const char* launcher, char* out, std::size_t capacity) noexcept {
  format::ProcessStatus self, parent;
  if (!format::read_own_process(self) || !format::read_process(self.parent, parent)) return 0;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return length_written(snprintf(out, capacity, "%s-%s-%d-%llu", launcher, host, self.parent,
                                 static_cast<unsigned long long>(parent.start)),
                        capacity);
}

bool is(const char* name) noexcept { return variable(name) != nullptr; }

const char* or_empty(const char* name) noexcept {
  const char* value = variable(name);
  return value != nullptr ? value : "";
}

std::size_t open_mpi_identity(char* out, std::size_t capacity) noexcept {
  if (!is("OMPI_COMM_WORLD_RANK") || !(is("PMIX_NAMESPACE") || is("OMPI_MCA_ess_base_jobid"))) return 0;
  // The name space consists of host and process id. Open MPI 4 also has a random key for each job.
  return length_written(snprintf(out, capacity, "openmpi-%s-%s",
                                 or_empty(is("PMIX_NAMESPACE") ? "PMIX_NAMESPACE" : "OMPI_MCA_ess_base_jobid"),
                                 or_empty("OMPI_MCA_orte_precondition_transports")),
                        capacity);
}

// MPICH's mpirun and its derivatives on one host: their process "hydra_pmi_proxy" started all ranks. Several hosts have
// one each.
std::size_t hydra_identity(char* out, std::size_t capacity) noexcept {
  if (!is("PMI_RANK") || strcmp(or_empty("MPI_LOCALNRANKS"), or_empty("PMI_SIZE")) != 0) return 0;
  format::ProcessStatus process;
  bool found = format::read_own_process(process);
  while (found && strncmp(process.name, "hydra_", 6) != 0) {
    found = process.parent > 0 && format::read_process(process.parent, process);
  }
  if (!found) return 0;
  return length_written(
      snprintf(out, capacity, "hydra-%d-%llu", process.pid, static_cast<unsigned long long>(process.start)), capacity);
}

// Slurm's step, or the name space of another launcher with PMIx.
std::size_t step_identity(char* out, std::size_t capacity) noexcept {
  if (is("SLURM_JOB_ID") && is("SLURM_STEP_ID")) {
    return length_written(snprintf(out, capacity, "slurm-%s.%s", or_empty("SLURM_JOB_ID"), or_empty("SLURM_STEP_ID")),
                          capacity);
  }
  if (!is("PMIX_NAMESPACE")) return 0;
  return length_written(snprintf(out, capacity, "pmix-%s", or_empty("PMIX_NAMESPACE")), capacity);
}

}  // namespace

LaunchedRank launched_rank() noexcept {
  for (const Launcher& launcher : launchers) {
    LaunchedRank found{number(launcher.rank), number(launcher.world_size), number(launcher.local_rank)};
    if (found.rank < 0) continue;
    // torchrun's RANK is too common a name to be used without WORLD_SIZE.
    if (strcmp(launcher.rank, "RANK") == 0 && found.world_size < 0) continue;
    if (found.world_size >= 0 && found.rank >= found.world_size) continue;
    return found;
  }
  return {};
}

std::size_t job_identity(char* out, std::size_t capacity) noexcept {
  if (capacity == 0) return 0;
  out[0] = '\0';
  if (const char* given = variable(env_job)) return length_written(snprintf(out, capacity, "%s", given), capacity);
  if (const std::size_t length = open_mpi_identity(out, capacity)) return length;
  if (is("TORCHELASTIC_RUN_ID") && is("RANK")) {
    const char* run = or_empty("TORCHELASTIC_RUN_ID");
    // The default id is "none". On one host the agent, which started all ranks, distinguishes two runs.
    const bool one_host = strcmp(or_empty("LOCAL_WORLD_SIZE"), or_empty("WORLD_SIZE")) == 0;
    if (strcmp(run, "none") == 0 && one_host) return parent_identity("torchrun", out, capacity);
    return length_written(
        snprintf(out, capacity, "torchrun-%s-%s-%s", run, or_empty("MASTER_ADDR"), or_empty("MASTER_PORT")), capacity);
  }
  if (const std::size_t length = step_identity(out, capacity)) return length;
  if (is("PMI_RANK")) {
    const char* batch = variable("PBS_JOBID");
    if (batch == nullptr) batch = variable("LSB_JOBID");
    if (batch != nullptr) return length_written(snprintf(out, capacity, "batch-%s", batch), capacity);
    return parent_identity("pmi", out, capacity);
  }
  return 0;
}

std::size_t launch_identity(char* out, std::size_t capacity) noexcept {
  if (capacity == 0) return 0;
  out[0] = '\0';
  if (const std::size_t length = open_mpi_identity(out, capacity)) return length;
  if (const std::size_t length = hydra_identity(out, capacity)) return length;
  if (is("TORCHELASTIC_RESTART_COUNT") && is("RANK")) {
    return length_written(snprintf(out, capacity, "torchrun-%s-%s.%s", or_empty("TORCHELASTIC_RUN_ID"),
                                   or_empty("SLURM_STEP_ID"), or_empty("TORCHELASTIC_RESTART_COUNT")),
                          capacity);
  }
  return step_identity(out, capacity);
}

}  // namespace paceline::record
