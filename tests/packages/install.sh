#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: install.sh BUILD-DIRECTORY LATE-RANK-PROGRAM
# Installs the program and the library into a new folder, moves the folder, records a run with the installed program, and
# builds samples/library against the installed library. It has to name the rank that was late. The links of the installed
# documents lead somewhere.
set -euo pipefail
build=$1 program=$2
sources=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "install.sh: $*" >&2; exit 1; }

for component in program development; do
  cmake --install "$build" --prefix "$work/first" --component $component >/dev/null
done
mv "$work/first" "$work/prefix"  # nothing may depend on the place
prefix=$work/prefix

[ "$(env -i "$prefix/bin/paceline" --version | head -1)" = "paceline $(sed -n 's/^project(Paceline VERSION \([0-9.]*\).*/\1/p' "$sources/CMakeLists.txt")" ] ||
  fail "the installed program does not print the version of project()"
cmake -D SOURCES="$work" -D OUTPUT="$work/commit.cpp" -P "$sources/cmake/version/commit.cmake"
grep -q '= "unknown";' "$work/commit.cpp" || fail "a source tree without git has a commit: $(cat "$work/commit.cpp")"
python3 "$sources/tests/packages/links.py" "$prefix/share/doc/paceline"
mpirun --bind-to none -n 2 "$prefix/bin/paceline" record -o "$work/run" --counters 0 -- "$program"

"$prefix/bin/paceline" record -o "$work/hooks" --counters 0 --pytorch -- python3 -c 'import paceline_pytorch' ||
  fail "the hooks for PyTorch are not found in the prefix"

cmake -S "$sources/samples/library" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_FLAGS=-O0 >"$work/log" 2>&1 ||
  fail "samples/library cannot be configured: $(tail -20 "$work/log")"
cmake --build "$work/build" >"$work/log" 2>&1 || fail "samples/library does not build: $(tail -20 "$work/log")"
said=$("$work/build/slowest_rank" "$work/run")
echo "$said"
[[ $said == *": the slowest rank is 1: it came last to "* ]] || fail "another rank was late"
