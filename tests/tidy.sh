#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy with the checks of .clang-tidy on the C++ files that changed: since REV, or all of them. About 10 s of CPU time a file.
# usage: tests/tidy.sh [REV | --all]       default: origin/main
set -euo pipefail
cd "$(dirname "$0")/.."
since=${1:-origin/main}
if [ "$since" = --all ]; then
  mapfile -t files < <(git ls-files '*.cpp')
else
  mapfile -t files < <(git diff --name-only --diff-filter=d "$(git merge-base "$since" HEAD)" -- '*.cpp')
fi
# CUDA's sources and the examples of the documents are not in the database of commands.
samples/configure.sh tidy -DPACELINE_TESTS=ON -DPACELINE_CUDA=OFF
known=$(mktemp)
trap 'rm -f "$known"' EXIT
sed -n "s|^ *\"file\": \"$PWD/\(.*\)\".*|\1|p" build/tidy/compile_commands.json | sort >"$known"
mapfile -t files < <(printf '%s\n' "${files[@]}" | sort | comm -12 - "$known")
echo "tidy.sh: ${#files[@]} files"
[ ${#files[@]} -eq 0 ] || printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy-16 -p build/tidy --quiet --warnings-as-errors='*' 2>/dev/null
