#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records HPC Challenge (Debian's package hpcc) on 2 ranks with the input that the package ships: some 79 million events
# of short MPI calls, the densest trace that the benchmarks of recorder, reader and viewer use.
#
#   hpcc_trace.sh PACELINE DIRECTORY [OPTION of `paceline record`]…
#
# DIRECTORY must not exist. It receives the two rank files, and hpcc's own output in DIRECTORY.out. The last line is the
# number of bytes on disk and what `paceline record` reported as dropped. The High-Performance Linpack part needs 4
# ranks and reports that in hpcc's output; all other parts run.
set -euo pipefail
fail() {
  echo "hpcc_trace.sh: $1" >&2
  exit 1
}
[ $# -ge 2 ] || fail "usage: hpcc_trace.sh PACELINE DIRECTORY [OPTION of paceline record]..."
paceline=$(realpath "$1")
[ -x "$paceline" ] || fail "$1 is not a program: build the target paceline first"
directory=$(realpath -m "$2")
shift 2
[ ! -e "$directory" ] || fail "$directory exists: give the name of a new directory"
command -v hpcc >/dev/null || fail "hpcc is not installed: apt-get install hpcc"
input=/usr/share/doc/hpcc/examples/_hpccinf.txt
[ -e "$input" ] || [ -e "$input.gz" ] || fail "$input is missing: install the package hpcc with its documentation"

mkdir -p "$directory.out"
cd "$directory.out"
if [ -e "$input" ]; then cp "$input" hpccinf.txt; else gzip -dc "$input.gz" >hpccinf.txt; fi
rm -f hpccoutf.txt
# One thread for each rank: hpcc's BLAS would start one for each core.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
mpirun --allow-run-as-root --oversubscribe -n 2 "$paceline" record -o "$directory" "$@" -- hpcc
grep -q "Success=1" hpccoutf.txt || fail "hpcc did not succeed: see $directory.out/hpccoutf.txt"
du -cb "$directory"/*.pace | tail -1
