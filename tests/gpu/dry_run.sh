#!/usr/bin/env bash
# usage: dry_run.sh BUILD: tests/gpu.sh on a machine without a GPU. Every step comes as far as the first call of CUDA, and
# says in one line that it ends there; the status tells it from success and from failure.
set -euo pipefail
kit=$(dirname "$0")/../gpu.sh
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
fail() {
  echo "FAILED: $*" >&2
  cat "$output/said" "$output"/out/steps/*.txt >&2
  exit 1
}
status=0
"$kit" --quick "$1" - "$output/out" > "$output/said" 2>&1 || status=$?
if grep -q '^machine *done' "$output/said"; then exit 77; fi  # there is a GPU
[ "$status" -eq 3 ] || fail "status $status, not 3"
steps="machine gpu_tests sanitizer kernel_times training_step two_ranks accuracy overhead allreduce pytorch"
[ "$(cut -f1 "$output/out/steps/all.tsv" | paste -sd' ')" = "$steps" ] || fail "other steps than $steps"
while IFS=$'\t' read -r name how reason; do
  [ "$how" = skipped ] || fail "$name: $how"
  case $name:$reason in *:"no GPU: "*) ;; pytorch:"PyTorch is not installed") ;; *) fail "$name: $reason" ;; esac
done < "$output/out/steps/all.tsv"
grep -q 'tests skipped, by name' "$output/said" || fail "the GPU tests do not tell how many are skipped"
python3 - "$output/out/figures.json" <<'PY' || fail "figures.json"
import json, sys
figures = json.load(open(sys.argv[1]))
assert len(figures["steps"]) == 10 and all(step["status"] == "skipped" for step in figures["steps"]), figures
PY
for wrong in "" "$1" "$1 $output/none $output/out" "$output - $output/out" "--fast $1 - $output/out"; do
  status=0
  # shellcheck disable=SC2086
  "$kit" $wrong > "$output/said" 2>&1 || status=$?
  [ "$status" -eq 2 ] || fail "status $status, not 2: gpu.sh $wrong"
done
