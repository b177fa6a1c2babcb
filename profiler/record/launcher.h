// Which rank of which job this process is, by what launchers put into the environment: Open MPI, MPICH and its kin
// (PMI), torchrun, Slurm, PMIx. Looked for in that order: a Slurm batch step has SLURM_PROCID=0 in the environment of
// everything that mpirun starts inside it.
//
// libc only: used inside the recorded program too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::record {

struct LaunchedRank {
  std::int32_t rank = -1;  // -1 = not known, here and below
  std::int32_t world_size = -1;
  std::int32_t local_rank = -1;
};

LaunchedRank launched_rank() noexcept;

// What /proc/PID/stat says of a process (proc(5)).
struct ProcessStatus {
  int parent = 0;
  bool has_ended = false;   // a zombie: its parent has not asked for its exit status yet
  std::uint64_t start = 0;  // clock ticks after boot; tells a process from an earlier one with the same id
};
// False where there is no such process. No allocation, no lock.
bool read_process(int pid, ProcessStatus& status) noexcept;

// Writes the job's identity, NUL-terminated and cut to `capacity`, and returns its length; 0 and "" where no launcher
// tells one. $PACELINE_JOB comes first. Equal on all ranks of one job; two jobs differ, also if their process ids are
// the same (containers often start from the same ids).
std::size_t job_identity(char* out, std::size_t capacity) noexcept;

}  // namespace paceline::record
