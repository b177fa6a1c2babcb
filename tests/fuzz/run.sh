#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes the readers, as many at once as there are cores, and prints how many inputs each one was given. Clang 16 makes the fuzzers in the sanitized build.
# Inputs that lead to new code, and one that crashes, are kept in build/asan/fuzz/TARGET.
# usage: tests/fuzz/run.sh [SECONDS] [TARGET…]       default: 30 for each target, and all targets of CMakeLists.txt
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-30}
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(sed -n 's/^paceline_fuzz(\(fuzz_[a-z_]*\) .*/\1/p' tests/fuzz/CMakeLists.txt)
samples/configure.sh asan -DPACELINE_TESTS=ON -DPACELINE_TRAINER=OFF -DPACELINE_VIEWER=OFF
cmake --build --preset asan --target "${targets[@]}"
fuzz() {
  local target=$1 seeds found runs
  seeds=tests/data/$(sed -n "s/^paceline_fuzz($target \([a-z-]*\) .*/\1/p" tests/fuzz/CMakeLists.txt)
  found=build/asan/fuzz/$target
  # Its schedule by entropy takes most of the time: without it the readers get 2 to 8 times as many inputs.
  if ! "build/asan/tests/$target" -entropic=0 -max_total_time="$seconds" -max_len=80000 -print_final_stats=1 -timeout=20 -rss_limit_mb=4096 \
       -artifact_prefix="$found/" "$found" "$seeds" >"$found.log" 2>&1; then
    tail -40 "$found.log" >&2
    return 1
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$found.log")
  [ "${runs:-0}" -gt 0 ] || { echo "fuzz: no input was run; see $found.log" >&2; return 1; }
  echo "fuzz: $target took $runs inputs in $seconds s without a crash"
}
export -f fuzz
export seconds
printf '%s\n' "${targets[@]}" | xargs -n 1 -P "$(nproc)" bash -c 'fuzz "$1"' bash
