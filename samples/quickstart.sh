#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a bare Debian 12 machine to two ranks on one timeline: installs, builds, makes a data set, trains ResNet-18 on 1
# and on 2 MPI ranks under the recorder, writes the scaling report and opens the viewer.
# usage: samples/quickstart.sh [OUTPUT]        OUTPUT: where everything goes, out/quickstart if not given
# In the environment, for a smaller run: IMAGES, EPOCHS, BATCH, OPTIONS (more options of paceline-train). PACELINE_BIN, the
# directory of programs that are built already: nothing is installed or built.
set -euo pipefail
output=$(realpath -m "${1:-$(dirname "$0")/../out/quickstart}")
cd "$(dirname "$0")/.."
out=${output#"$PWD"/}
images=${IMAGES:-2048}   # of the data set, for training; the test set holds a quarter
epochs=${EPOCHS:-3}
batch=${BATCH:-32}       # per rank, in every run, so that more ranks mean fewer iterations
read -ra options <<<"${OPTIONS:-}"

step() { printf '\n== %s\n' "$*"; }

if [ -z "${PACELINE_BIN:-}" ]; then
  step "1/6 Packages"
  samples/setup.sh

  step "2/6 Build"
  [ -e build/release/build.ninja ] || samples/configure.sh release
  cmake --build --preset release --target paceline paceline-train paceline-view paceline-inject
fi
source samples/programs.sh

step "3/6 Data set"
data=$out/data
if [ -e "$data/test_batch.bin" ]; then
  echo "$data is there already"
else
  rm -rf "$data"  # what an interrupted run left
  paceline-train make-dataset "$data" --train "$images" --test $((images / 4)) --seed 1
fi

# One thread a rank; ranks not pinned to the same core.
export OMP_NUM_THREADS=1
for ranks in 1 2; do
  step "$((3 + ranks))/6 ResNet-18 on $ranks rank(s), recorded"
  rm -rf "$out/ranks-$ranks"
  mpirun --bind-to none -n "$ranks" paceline record -o "$out/ranks-$ranks" -- \
    paceline-train --model resnet18 --data "$data" --batch-size "$batch" --epochs "$epochs" --threads 1 --seed 1 \
    "${options[@]}"
done

step "6/6 Report and viewer"
paceline report --format html -o "$out/report.html" "$out/ranks-1" "$out/ranks-2"
paceline report "$out/ranks-1" "$out/ranks-2"
echo
echo "Report:  $out/report.html"
if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
  echo "Viewer:  paceline-view $out/ranks-2 (opening)"
  exec paceline-view "$out/ranks-2"
else
  paceline-view --screenshot "$out/viewer.png" --size 1600x900 "$out/ranks-2"
  echo "Viewer:  no display here; its picture is $out/viewer.png"
fi
