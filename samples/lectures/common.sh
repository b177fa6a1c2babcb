# SPDX-License-Identifier: Apache-2.0
# Sourced by the experiments, which are called NAME.sh [SIZE] [OUTPUT]:
#   SIZE    quick, if not given: about a minute on two slow cores, with a narrow network
#           full: the lectures' network, 2,500 images and 4 or 50 epochs; images have 32 pixels a side, not 256
#           tiny: a few iterations, for the tests
#   OUTPUT  directory for the traces and reports; out/FOLDER/NAME of this tree if not given
# THREADS: of each rank (1). MPIRUN: another launcher, e.g. MPIRUN="mpirun --host a:2,b:2".
# An experiment sets `runs`, the number of its runs, and `look`, calls `record` for each run and `report` at the end.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../programs.sh"
experiment=$(basename "$0" .sh) folder=$(basename "$(realpath -- "$(dirname "$0")")")
size=${1:-quick}
output=$(realpath -m -- "${2:-${samples%/*}/out/$folder/$experiment}")
read -ra launch <<<"${MPIRUN:-mpirun --bind-to none}"
runs=1 run=0 look=""

# The lectures' workload: Chainer's VGG for CIFAR, batch 32 a rank, momentum SGD.
case $size in
  tiny) images=64 test_images=8 batch=4 epochs=2 width=0.125 ;;
  quick) images=640 test_images=160 batch=32 epochs=4 width=0.25 ;;
  full) images=2500 test_images=500 batch=32 epochs=4 width=1 ;;
  *)
    echo "usage: $0 [quick|full|tiny] [OUTPUT]" >&2
    exit 2
    ;;
esac

# of_size TINY QUICK FULL: prints the one for this size.
of_size() {
  case $size in tiny) echo "$1" ;; quick) echo "$2" ;; full) echo "$3" ;; esac
}

# Draws the data set; `training` then has the workload's options.
make_data() {
  local data=$output/data-$images
  mkdir -p "$output"
  if [ ! -e "$data/test_batch.bin" ]; then
    rm -rf "$data"  # what an interrupted run left
    paceline-train make-dataset "$data" --train "$images" --test "$test_images" --seed 1
  fi
  training=(--preset lecture-2gpu --width "$width" --data "$data")
}

# record NAME RANKS OPTIONS…: trains on so many ranks, $batch images each; the traces are in OUTPUT/NAME.
record() {
  local name=$1 ranks=$2
  shift 2
  run=$((run + 1))
  printf '\n== %s, run %d of %d: %s\n' "$experiment" "$run" "$runs" "$name"
  rm -rf "${output:?}/$name"
  "${launch[@]}" -n "$ranks" paceline record -o "$output/$name" -- \
    paceline-train "${training[@]}" --batch-size "$batch" --threads "${THREADS:-1}" --seed 1 "$@"
}

# report RUN…: writes the report of these runs, and prints what is about all of them and a line for each.
report() {
  (cd "$output" && paceline report --format html,text,json -o ./ "$@")
  printf '\n== Report\n'
  if [ $# -eq 1 ]; then cat "$output/report.txt"; else sed '/^── Details of the scaling/d; /^── /,$d' "$output/report.txt"; fi
  python3 "$samples/lectures/steps.py" "$output/report.json"
  printf '\nLook at: %s\n\nReports: %s/report.html, report.txt, report.json; traces beside them\n' "$look" "$output"
}
