#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: jobs.sh DIRECTORY-OF-PROGRAMS
# The job files' bodies, with the variables that the schedulers set: traces of all ranks, the report, the status of the job.
source "$(dirname "$0")/setup.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_plm_rsh_agent="" OMPI_MCA_odls_base_sigkill_timeout=1  # as Open MPI has it, or failures take longer
export OPTIONS="--image-size 32 --width 0.125 --train-images 16 --test-images 4 --batch-size 4 --iterations 2"
bash -n "$samples/jobs/train.pbs"
bash -n "$samples/jobs/train.slurm"

# has RUN: files of two ranks, and the report.
has() {
  paceline info --format json "$1" | python3 -c '
import json, sys
traces = json.load(sys.stdin)["traces"]
assert sorted((t["rank"], t["world_size"]) for t in traces) == [(0, 2), (1, 2)], traces'
  grep -q '<html' "$1/report.html" || fail "$1: no page"
  grep -q 'resnet18 width 0.125, 2 ranks' "$1/report.txt" || fail "$1: $(cat "$1/report.txt")"
}

# PBS: from another directory, a node file with a line for each rank.
printf 'localhost\nlocalhost\n' >nodes
export PBS_O_WORKDIR=$work PBS_NODEFILE=$work/nodes OMP_NUM_THREADS=1
quietly env -C / PBS_JOBID=12.server bash "$samples/jobs/train.pbs"
has paceline-12
got=0
PBS_JOBID=13.server MODEL=no_such bash "$samples/jobs/train.pbs" >said 2>&1 || got=$?
[ "$got" -eq 2 ] || fail "status $got, not the trainer's: $(cat said)"

# Slurm: srun's place is taken by a script that wants its options.
mkdir bin
cat >bin/srun <<'SRUN'
#!/bin/bash
[ "$1 $2 $3 $4" = "--mpi=pmix --cpus-per-task=1 -n 2" ] || exit 9
shift 4
exec mpirun --bind-to none -n 2 "$@"
SRUN
chmod +x bin/srun
paceline-train make-dataset data --train 16 --test 4 >/dev/null
export SLURM_SUBMIT_DIR=$work SLURM_NTASKS=2 SLURM_CPUS_PER_TASK=1 PATH=$work/bin:$PATH
quietly env -C / SLURM_JOB_ID=14 DATA="$work/data" OPTIONS="--width 0.125 --batch-size 4 --iterations 2" \
  bash "$samples/jobs/train.slurm"
has paceline-14
quietly env -C / SLURM_JOB_ID=15 LAUNCH="mpirun --bind-to none" bash "$samples/jobs/train.slurm"
has paceline-15
