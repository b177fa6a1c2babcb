// SPDX-License-Identifier: Apache-2.0
// The rank and the job of this process, from the variables of its launcher: Open MPI, MPICH and its derivatives (PMI),
// torchrun, Slurm, PMIx. They are tried in this order, because a Slurm batch step puts SLURM_PROCID=0 into the
// environment of every process that mpirun starts inside it.
//
// libc only: used inside the recorded program too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::record {

struct LaunchedRank {
  std::int32_t rank = -1;  // -1 = unknown, here and below
  std::int32_t world_size = -1;
  std::int32_t local_rank = -1;
};

LaunchedRank launched_rank() noexcept;

// Writes the job's identity, NUL-terminated and cut to `capacity`, and returns its length; 0 and "" if no launcher
// gives one. $PACELINE_JOB comes first. The identity is equal on all ranks of a job. Two jobs differ even if their
// process ids are equal, as is common in containers.
std::size_t job_identity(char* out, std::size_t capacity) noexcept;

// The same for the start by mpirun, srun or torchrun, of which a job may have several, one after the other: torchrun
// starts all ranks again when one has failed. $PACELINE_JOB does not change it. Equal for all processes of one start,
// also after exec; 0 and "" if the launcher gives none, as MPICH's on several hosts.
std::size_t launch_identity(char* out, std::size_t capacity) noexcept;

}  // namespace paceline::record
