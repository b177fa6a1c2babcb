#!/usr/bin/env bash
# From a bare Debian 12 machine to two ranks on one timeline: installs, builds, makes a data set, trains ResNet-18 on 1
# and on 2 MPI ranks under the recorder, writes the scaling report and opens the viewer.
# usage: samples/quickstart.sh [OUTPUT]        OUTPUT: where everything goes, out/quickstart if not given
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-out/quickstart}
images=2048      # of the data set, for training; the test set holds a quarter
epochs=3
batch=32         # per rank, in every run, so that more ranks mean fewer iterations

step() { printf '\n== %s\n' "$*"; }

step "1/6 Packages"
samples/setup.sh

step "2/6 Build"
[ -e build/release/build.ninja ] || samples/configure.sh release
cmake --build --preset release --target paceline paceline-train paceline-view paceline-inject
export PATH=$PWD/build/release/bin:$PATH

step "3/6 Data set"
data=$out/data
if [ -e "$data/test_batch.bin" ]; then
  echo "$data is there already"
else
  rm -rf "$data"  # what an interrupted run left
  paceline-train make-dataset "$data" --train "$images" --test $((images / 4)) --seed 1
fi

# One thread a rank; ranks not pinned to the same core; several ranks a core allowed, as root too (containers).
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_plm_rsh_agent=""
for ranks in 1 2; do
  step "$((3 + ranks))/6 ResNet-18 on $ranks rank(s), recorded"
  rm -rf "$out/ranks-$ranks"
  mpirun --bind-to none -n "$ranks" paceline record -o "$out/ranks-$ranks" -- \
    paceline-train --model resnet18 --data "$data" --batch-size "$batch" --epochs "$epochs" --threads 1 --seed 1
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
