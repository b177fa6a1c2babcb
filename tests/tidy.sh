#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy with the checks of .clang-tidy on C++ files, each alone (about 10 s of CPU time): those that changed since REV, or the
# MOST that changed last; or on all sources and headers, several at once as the unity builds compile them (about an hour of CPU time).
# usage: tests/tidy.sh [REV | --last MOST | --all]       default: --last 40
set -euo pipefail
cd "$(dirname "$0")/.."
since=${1:---last} most=${2:-40}
unity=OFF
# A unity build includes sources, which is what bugprone-suspicious-include looks for.
options=(-p build/tidy --quiet --warnings-as-errors='*' --header-filter="^$PWD/(analysis|profiler|trainer|viewer|tests|cmake)/")
[ "$since" != --all ] || { unity=ON; options+=(--checks=-bugprone-suspicious-include); }
# CUDA's sources are left out: clang-tidy does not read nvcc's options.
samples/configure.sh tidy -DPACELINE_TESTS=ON -DPACELINE_CUDA=OFF -DCMAKE_UNITY_BUILD=$unity -DCMAKE_UNITY_BUILD_BATCH_SIZE=24

changed() {
  if [ "$since" = --last ]; then
    git log -n 200 --no-merges --diff-filter=d --name-only --format= -- '*.cpp' | awk '!seen[$0]++'
  else
    git diff --name-only --diff-filter=d "$(git merge-base "$since" HEAD)" -- '*.cpp'
  fi
}
known=$(sed -n 's|^ *"file": "\(.*\.c[px][px]\)".*|\1|p' build/tidy/compile_commands.json | grep -v _autogen/ | sort -u)
if [ "$since" = --all ]; then
  files=$known
else
  files=$(changed | sed "s|^|$PWD/|" | grep -xFf <(printf '%s\n' "$known") || true)
  [ "$since" != --last ] || files=$(head -n "$most" <<<"$files")
fi
echo "tidy.sh: $(grep -c . <<<"$files") files"
[ -z "$files" ] || tr '\n' '\0' <<<"$files" | xargs -0 -n 1 -P "$(nproc)" clang-tidy-16 "${options[@]}" 2>/dev/null
