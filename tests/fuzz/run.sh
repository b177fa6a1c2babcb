#!/usr/bin/env bash
# Fuzzes the reader of trace files and says how many inputs it was given. Only the fuzzer is built, with clang 16.
# usage: tests/fuzz/run.sh [SECONDS]       default: 60
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-60}
if ! command -v clang++-16 >/dev/null; then
  echo "fuzz: left out: install clang-16 and libclang-rt-16-dev (Debian's names)"
  exit 77
fi
mkdir -p build/fuzz/corpus
log=build/fuzz/log.txt
if ! { cmake -B build/fuzz -G Ninja -DCMAKE_C_COMPILER=clang-16 -DCMAKE_CXX_COMPILER=clang++-16 \
         -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" -DPACELINE_TESTS=ON \
         -DPACELINE_MPI=OFF -DPACELINE_TRAINER=OFF -DPACELINE_VIEWER=OFF -DPACELINE_CUDA=OFF &&
       cmake --build build/fuzz --target fuzz_reader; } >"$log" 2>&1; then
  tail -20 "$log" >&2
  exit 1
fi
# What is found is kept: an input that crashes lies in build/fuzz, and belongs into tests/data/fuzz-reader.
if ! build/fuzz/tests/fuzz_reader -max_total_time="$seconds" -max_len=80000 -print_final_stats=1 \
     -artifact_prefix=build/fuzz/ build/fuzz/corpus tests/data/fuzz-reader >"$log" 2>&1; then
  tail -40 "$log" >&2
  exit 1
fi
runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
[ "${runs:-0}" -gt 0 ] || { echo "fuzz: no input was run; see $log" >&2; exit 1; }
echo "fuzz: the reader took $runs inputs in $seconds s without a crash"
