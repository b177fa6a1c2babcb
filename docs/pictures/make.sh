#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Draws the pictures of the viewer in README and docs.
#
# usage: docs/pictures/make.sh BUILD RUN
#
# BUILD is a build directory with tests; RUN is a run of 2 ranks, such as out/quickstart/ranks-2.
set -euo pipefail
[ $# = 2 ] || { sed -n '4,6s/^# //p' "$0" >&2; exit 2; }
build=$(realpath "$1") run=$(realpath "$2") here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cd "$work"  # the picture shows the path of the run
"$build/tests/make_viewer_run" run64 64
view() { QT_QPA_PLATFORM=offscreen "$build/bin/paceline-view" "$@"; }
view --screenshot "$here/viewer.png" --iterations 20:21 --select backward "$run"
view --screenshot "$here/viewer-ranks.png" --size 1400x1080 --panel "Heat map" run64
cp -R "$here/../../tests/data/h200/nccl_two_ranks" h200  # two ranks that share an H200, with NCCL
view --screenshot "$here/viewer-gpu.png" --size 1680x900 --iterations 8:9 h200
