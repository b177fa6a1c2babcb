#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: dry_run.sh BUILD: tests/gpu.sh on a machine without a GPU. Every step comes as far as the first call of CUDA, and
# says in one line that it ends there; the status tells it from success and from failure.
set -euo pipefail
kit=$(realpath "$(dirname "$0")/..")/gpu.sh
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
fail() {
  echo "FAILED: $*" >&2
  cat "$output/said" "$output"/*/steps/*.txt >&2 || true
  exit 1
}
status=0
"$kit" --quick "$1" "$output/out" > "$output/said" 2>&1 || status=$?
if grep -q '^machine *done' "$output/said"; then exit 77; fi  # there is a GPU
[ "$status" -eq 3 ] || fail "status $status, not 3"
steps=$("$kit" --steps | paste -sd" ")
[ "$(cut -f1 "$output/out/steps/all.tsv" | paste -sd' ')" = "$steps" ] || fail "other steps than $steps"
while IFS=$'\t' read -r name how reason; do
  [ "$how" = skipped ] || fail "$name: $how"
  case $name:$reason in *:"no GPU: "*) ;; pytorch:"PyTorch is not installed" | torch_trace:"PyTorch is not installed" | programs:"PyTorch is not installed") ;; *) fail "$name: $reason" ;; esac
done < "$output/out/steps/all.tsv"
grep -q 'tests skipped, by name' "$output/said" || fail "the GPU tests do not tell how many are skipped"
python3 - "$output/out/figures.json" <<'PY' || fail "figures.json"
import json, sys
figures = json.load(open(sys.argv[1]))
assert len(figures["steps"]) == 16 and all(step["status"] == "skipped" for step in figures["steps"]), figures
PY
# What is done stays so when the script is called again with the same programs, and is done anew with others.
sed -i '/^machine/!s/\tskipped\t.*/\tdone\tsaid before/' "$output/out/steps/all.tsv"
status=0
"$kit" --limit 120 "$1" "$output/out" > "$output/said" 2>&1 || status=$?
[ "$status" -eq 3 ] || fail "status $status, not 3, when called again"
grep -q '^kernel_times *done *before' "$output/said" || fail "a step that is done is repeated"
grep -q '^kernel_times *done *said before' "$output/out/figures.txt" || fail "a step that was done is lost"
[ "$(cut -d' ' -f1 "$output/out/figures.txt" | sort | uniq -c | grep -c '^ *1 ')" -eq 16 ] || fail "not one line for each step"
"$kit" --steps kernel_times "$1" "$output/out" > "$output/said" 2>&1 || true
grep -q '^kernel_times *skipped *no GPU' "$output/said" || fail "--steps does not repeat"
echo other > "$output/out/steps/programs"
"$kit" --steps machine "$1" "$output/out" > "$output/said" 2>&1 || true
! grep -q said.before "$output/out/figures.txt" || fail "results of other programs are kept"

# Traces that would make OUTPUT too large are left out, by name.
(
  eval "$(sed -n '/^keep()/,/^}/p' "$kit")"
  cd "$output" && output=$output/small
  mkdir -p "$output/steps"
  head -c 9000000 /dev/zero > first.pace && cp first.pace second.pace && echo small > third.pace
  keep traces first.pace second.pace third.pace
  [ "$(ls "$output/traces" | paste -sd' ')" = "first.pace third.pace" ] && grep -q '^second.pace: 87.. KiB are left out' "$output/steps/left_out"
) > "$output/said" 2>&1 || fail "what is kept"

# The figures' limits, on figures made up.
cd "$output"
figures=$(dirname "$kit")/gpu/figures.py
within() {  # out.json comes last, or before "none"
  case "$*" in *out.json*) python3 "$figures" "$@" > said ;; *) python3 "$figures" "$@" out.json > said ;; esac
}
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
within losses cpu diverged out.json none || fail "losses without a limit"
within overhead 1 with.* without.* || fail "a cost of 0.2 %"
within overhead none slow.* without.* || fail "a cost without a limit"
within fusion slow.* without.* || fail "fused 2 % slower"
printf 'name,count(*),sum(duration_ns)\na,12,1000\n"b<1, 2>",3,500\n' > ours.csv
sed 's/1000/1010/' ours.csv > theirs.csv
within kernels ours.csv theirs.csv || fail "kernels 0.7 % apart"
sed 's/1000/1030/' ours.csv > theirs.csv
beyond kernels ours.csv theirs.csv
sed 's/,3,/,4,/' ours.csv > theirs.csv
beyond kernels ours.csv theirs.csv
beyond overhead 1 slow.* without.*
grep -q 'cost of a step: +2.200%' said || fail "$(cat said)"

# A kit of this build: the same steps, as many as are asked for and fit.
XZ_OPT=-0 "$kit" --pack "$output/kit.tar.xz" "$1" > "$output/said"
status=0
"$kit" --steps machine,gpu_tests --limit 60 "$output/kit.tar.xz" "$output/packed" > "$output/said" 2>&1 || status=$?
[ "$status" -eq 3 ] || fail "status $status, not 3, from the kit"
[ "$(cut -f1 "$output/packed/steps/all.tsv" | paste -sd' ')" = "machine gpu_tests" ] || fail "other steps than those asked for"
tar -tJf "$output/packed/results.tar.xz" > "$output/said"
grep -q 'figures.json' "$output/said" || fail "the results are not packed"
"$kit" --steps machine --limit 5 "$1" "$output/short" > "$output/said" 2>&1 || true
grep -q 'no time is left' "$output/said" || fail "a step that does not fit"

# On a bare machine, most steps lack Python.
status=0
"$(dirname "$kit")/gpu/bare_machine.sh" "$output/kit.tar.xz" "$output/bare" > "$output/said" 2>&1 || status=$?
if [ "$status" -ne 77 ]; then
  [ "$status" -eq 3 ] || fail "status $status, not 3, on a bare machine"
  while IFS=$'\t' read -r name how reason; do
    case $name:$how:$reason in
      *:skipped:"no GPU: "* | *:skipped:"no python3") ;;
      *) fail "on a bare machine: $name: $how: $reason" ;;
    esac
  done < "$output/bare/steps/all.tsv"
  for step in machine gpu_tests sanitizer two_ranks allreduce; do
    grep -qP "^$step\tskipped\tno GPU: " "$output/bare/steps/all.tsv" || fail "on a bare machine $step does not come to a call of CUDA"
  done
fi

for wrong in "" "$1" "$output/none $output/out" "--steps wrong $1 $output/out" "--fast $1 $output/out"; do
  status=0
  # shellcheck disable=SC2086
  "$kit" $wrong > "$output/said" 2>&1 || status=$?
  [ "$status" -eq 2 ] || fail "status $status, not 2: gpu.sh $wrong"
done
