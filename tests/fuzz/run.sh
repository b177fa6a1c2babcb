#!/usr/bin/env bash
# Fuzzes the readers and says how many inputs each one was given. Only the fuzzers are built, with clang 16.
# usage: tests/fuzz/run.sh [SECONDS] [TARGET…]       default: 120 in all, and all targets of CMakeLists.txt
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-120}
wanted=" ${*:2} "
if ! command -v clang++-16 >/dev/null; then
  echo "fuzz: left out: install clang-16 and libclang-rt-16-dev (Debian's names)"
  exit 77
fi
mkdir -p build/fuzz
log=build/fuzz/log.txt
if ! cmake -B build/fuzz -G Ninja -DCMAKE_C_COMPILER=clang-16 -DCMAKE_CXX_COMPILER=clang++-16 \
       -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" -DPACELINE_TESTS=ON \
       -DPACELINE_MPI=OFF -DPACELINE_TRAINER=OFF -DPACELINE_VIEWER=OFF -DPACELINE_CUDA=OFF >"$log" 2>&1; then
  tail -20 "$log" >&2
  exit 1
fi
targets=()
for target in $(sed -n 's/^ *add_executable(\(fuzz_[a-z_]*\) .*/\1/p' tests/fuzz/CMakeLists.txt); do
  [[ $wanted = "  " || $wanted = *" $target "* ]] && targets+=("$target")
done
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: no such target:$wanted" >&2; exit 1; }
if ! cmake --build build/fuzz --target "${targets[@]}" >"$log" 2>&1; then
  tail -20 "$log" >&2
  exit 1
fi
each=$((seconds / ${#targets[@]} + 1))
for target in "${targets[@]}"; do
  seeds=tests/data/${target//_/-}
  [ -d "$seeds" ] || seeds=tests/data/fuzz-reader
  mkdir -p "build/fuzz/corpus-$target"
  # What is found is kept: an input that crashes lies in build/fuzz, and belongs into the corpus.
  if ! "build/fuzz/tests/$target" -max_total_time="$each" -max_len=80000 -print_final_stats=1 -timeout=20 -rss_limit_mb=4096 \
       -artifact_prefix="build/fuzz/$target-" "build/fuzz/corpus-$target" "$seeds" >"$log" 2>&1; then
    tail -40 "$log" >&2
    exit 1
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  [ "${runs:-0}" -gt 0 ] || { echo "fuzz: no input was run; see $log" >&2; exit 1; }
  echo "fuzz: $target took $runs inputs in $each s without a crash"
done
