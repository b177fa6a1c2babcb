#!/usr/bin/env bash
# usage: dry_run.sh BUILD: tests/gpu.sh on a machine without a GPU. Every step comes as far as the first call of CUDA, and
# says in one line that it ends there; the status tells it from success and from failure.
set -euo pipefail
kit=$(realpath "$(dirname "$0")/..")/gpu.sh
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
steps="machine gpu_tests sanitizer kernel_times training_step two_ranks overlap accuracy images fusion overhead allreduce pytorch"
[ "$(cut -f1 "$output/out/steps/all.tsv" | paste -sd' ')" = "$steps" ] || fail "other steps than $steps"
while IFS=$'\t' read -r name how reason; do
  [ "$how" = skipped ] || fail "$name: $how"
  case $name:$reason in *:"no GPU: "*) ;; pytorch:"PyTorch is not installed") ;; *) fail "$name: $reason" ;; esac
done < "$output/out/steps/all.tsv"
grep -q 'tests skipped, by name' "$output/said" || fail "the GPU tests do not tell how many are skipped"
python3 - "$output/out/figures.json" <<'PY' || fail "figures.json"
import json, sys
figures = json.load(open(sys.argv[1]))
assert len(figures["steps"]) == 13 and all(step["status"] == "skipped" for step in figures["steps"]), figures
PY
# The figures' limits, on figures made up.
cd "$output"
figures=$(dirname "$kit")/gpu/figures.py
within() { python3 "$figures" "$@" out.json > said; }
beyond() { ! within "$@" || fail "not beyond its limit: $*"; }
log() {  # FILE SECONDS ACCURACY [LOSS]: 40 iterations, of which the first are slow
  python3 - "$@" <<'PY'
import json, sys
loss = float(sys.argv[4]) if len(sys.argv) > 4 else 1
lines = [{"event": "iteration", "seconds": float(sys.argv[2]) * (5 if i < 30 else 1), "loss": loss} for i in range(40)]
lines.append({"event": "epoch", "test_accuracy": float(sys.argv[3])})
open(sys.argv[1], "w").write("\n".join(map(json.dumps, lines)))
PY
}
echo '{"kernels": 100, "before": 2, "event_ms": 100, "one_ms": 1}' > events.json
for traced in 101.2 102.8 103.2 100.8; do  # the two before among them
  echo "{\"runs\": [{\"per_rank\": [{\"gpu\": {\"compute_ns\": ${traced}e6}}]}]}" > "report$traced.json"
done
within kernel-times events.json report101.2.json || fail "0.8 % less"
within kernel-times events.json report102.8.json || fail "0.8 % more"
beyond kernel-times events.json report103.2.json
beyond kernel-times events.json report100.8.json
log cpu 1 0.80 && log same 1 0.79 && log worse 1 0.60 && log diverged 1 0.8 1.5
within accuracy cpu same || fail "an accuracy lower by chance"
beyond accuracy cpu worse
for i in 1 2 3; do log "without.$i" 1 0.8 && log "with.$i" "1.00$i" 0.8 && log "slow.$i" "1.02$i" 0.8; done
within losses cpu same || fail "equal losses"
beyond losses cpu diverged
within overhead with.* without.* || fail "a cost of 0.2 %"
beyond overhead slow.* without.*
within fusion with.* without.* || fail "fused 0.2 % slower"
beyond fusion slow.* without.*
beyond overhead slow.* without.*
grep -q 'cost of a step: +2.200%' said || fail "$(cat said)"

for wrong in "" "$1" "$1 $output/none $output/out" "$output - $output/out" "--fast $1 - $output/out"; do
  status=0
  # shellcheck disable=SC2086
  "$kit" $wrong > "$output/said" 2>&1 || status=$?
  [ "$status" -eq 2 ] || fail "status $status, not 2: gpu.sh $wrong"
done
