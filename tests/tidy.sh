#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy with the checks of .clang-tidy on the C++ files that changed since REV, each alone (about 10 s of CPU time), or on
# all sources and headers, several at once as the unity builds compile them (an hour or more on two cores).
# usage: tests/tidy.sh [REV | --all]       default: origin/main
set -euo pipefail
cd "$(dirname "$0")/.."
since=${1:-origin/main}
# CUDA's sources are left out: clang-tidy does not read nvcc's options.
options=(-p build/tidy --quiet --warnings-as-errors='*')
if [ "$since" = --all ]; then
  samples/configure.sh tidy -DPACELINE_TESTS=ON -DPACELINE_CUDA=OFF -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=24
  mapfile -t files < <(sed -n 's|^ *"file": "\(.*\.c[px][px]\)".*|\1|p' build/tidy/compile_commands.json | grep -v _autogen/ | sort -u)
  options+=(--header-filter="^$PWD/(analysis|profiler|trainer|viewer|tests|cmake)/" --checks=-bugprone-suspicious-include)
else
  samples/configure.sh tidy -DPACELINE_TESTS=ON -DPACELINE_CUDA=OFF -DCMAKE_UNITY_BUILD=OFF
  known=$(mktemp)
  trap 'rm -f "$known"' EXIT
  sed -n "s|^ *\"file\": \"$PWD/\(.*\)\".*|\1|p" build/tidy/compile_commands.json | sort >"$known"
  mapfile -t files < <(git diff --name-only --diff-filter=d "$(git merge-base "$since" HEAD)" -- '*.cpp' | sort | comm -12 - "$known")
fi
echo "tidy.sh: ${#files[@]} files"
[ ${#files[@]} -eq 0 ] || printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy-16 "${options[@]}" 2>/dev/null
