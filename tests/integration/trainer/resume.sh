#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: resume.sh PACELINE-TRAIN
# A run that stops and resumes ends with the same bits as one that never stopped.
source "$(dirname "$0")/setup.sh"
run=(--synthetic --image-size 32 --width 0.125 --train-images 40 --test-images 4 --lr 0.02 --batch-size 4 --schedule constant)

# On 1 rank an epoch has 10 iterations, and the run stops within an epoch. On 2 ranks it has 5, and the run stops at an
# epoch's end.
for stop in 1:3 2:5; do
  count=${stop%:*}
  ranks "$count" "${run[@]}" --iterations 8 --checkpoint "whole$count" >/dev/null
  ranks "$count" "${run[@]}" --iterations "${stop#*:}" --checkpoint "parts$count" >/dev/null
  ranks "$count" "${run[@]}" --iterations 8 --checkpoint "parts$count" --resume >/dev/null
  cmp "whole$count" "parts$count" || fail "resumed on $count ranks: other weights"
done

# An interrupted run prints a line, writes a checkpoint and ends with status 1. Resumed, it reaches the same end.
"$TRAIN" --threads 1 "${run[@]}" --iterations 100000 --checkpoint stopped --log stopped.jsonl >/dev/null 2>stderr &
until [ $(($(grep -c '"iteration"' stopped.jsonl 2>/dev/null) + 0)) -ge 3 ]; do sleep 0.1; done
kill -TERM $!
got=0
wait $! || got=$?
[ "$got" -eq 1 ] || fail "interrupted with status $got"
says "interrupted: stopped after iteration" "--resume"
finished=$(sed 's/.*after iteration \([0-9]*\) of.*/\1/' stderr)
[ "$(grep -c '"event":"iteration"' stopped.jsonl)" -eq "$finished" ] || fail "$finished iterations, but the log has others"
"$TRAIN" --threads 1 "${run[@]}" --iterations $((finished + 2)) --checkpoint stopped --resume >/dev/null
"$TRAIN" --threads 1 "${run[@]}" --iterations $((finished + 2)) --checkpoint unstopped --eval-every 0 >/dev/null
cmp stopped unstopped || fail "interrupted and resumed: other weights"

# Every updater whose runs are repeatable, on 2 ranks, stopped within an epoch, when each rank has its own statistics of
# batch norms.
for updater in main_rank sharded overlap double_buffering; do
  with=("${run[@]}" --updater "$updater")
  ranks 2 "${with[@]}" --iterations 8 --checkpoint "whole.$updater" --eval-every 0 >/dev/null
  ranks 2 "${with[@]}" --iterations 3 --checkpoint "parts.$updater" --eval-every 0 >/dev/null
  ranks 2 "${with[@]}" --iterations 8 --checkpoint "parts.$updater" --resume --eval-every 0 >/dev/null
  cmp "whole.$updater" "parts.$updater" || fail "$updater: resumed: other bits"
done

# Updaters whose ranks differ between meetings: equal if the runs meet at the same iterations.
for updater in local_sgd top_k power_sgd; do
  with=("${run[@]}" --updater "$updater" --eval-every 0 --checkpoint-every 3)
  ranks 2 "${with[@]}" --iterations 8 --checkpoint "whole.$updater" >/dev/null
  ranks 2 "${with[@]}" --iterations 3 --checkpoint "parts.$updater" >/dev/null
  ranks 2 "${with[@]}" --iterations 8 --checkpoint "parts.$updater" --resume >/dev/null
  cmp "whole.$updater" "parts.$updater" || fail "$updater: resumed: other bits"
done

# A checkpoint holds the whole state of the sharded optimizer. It is that of the allreduce (but for the name of the
# updater, in the header), and other numbers of ranks resume it.
ranks 3 "${run[@]}" --updater sharded --communicator ring --iterations 2 --checkpoint of-shards --eval-every 0 >/dev/null
ranks 3 "${run[@]}" --updater allreduce --communicator ring --iterations 2 --checkpoint of-whole --eval-every 0 >/dev/null
python3 - <<'PY'
def arrays(name):
    content = open(name, "rb").read()
    at = content.index(b"\n") + 1
    return content[at + 8 + int.from_bytes(content[at:at + 8], "little"):-8]  # without header and checksum
assert arrays("of-shards") == arrays("of-whole"), "another state"
PY
cp of-shards of-shards-too
ranks 2 "${run[@]}" --updater sharded --iterations 6 --checkpoint of-shards --resume --eval-every 0 >/dev/null
ranks 2 "${run[@]}" --iterations 6 --checkpoint of-shards-too --resume --eval-every 0 >/dev/null
python3 - <<'PY'
def arrays(name):
    content = open(name, "rb").read()
    at = content.index(b"\n") + 1
    return content[at + 8 + int.from_bytes(content[at:at + 8], "little"):-8]
assert arrays("of-shards") == arrays("of-shards-too"), "resumed on other ranks: another state"
PY

# Checkpoints within an epoch, by iterations: they do not change the result of any updater, and the last three are kept.
# A run that is killed after iteration 7 resumes from there.
for updater in allreduce double_buffering; do
  with=("${run[@]}" --updater "$updater" --eval-every 0)
  ranks 2 "${with[@]}" --iterations 8 --checkpoint "often.$updater" --checkpoint-every 2 --keep 3 >/dev/null
  ranks 2 "${with[@]}" --iterations 8 --checkpoint "seldom.$updater" --checkpoint-every 100 >/dev/null
  cmp "often.$updater" "seldom.$updater" || fail "$updater: checkpoints within an epoch changed the run"
  # shellcheck disable=SC2010 # the names are our own
  ls "often.$updater".* | grep -qvE '[.][12]$' && fail "more than three are kept: $(ls)"
  mv "often.$updater.2" older
  ranks 2 "${with[@]}" --iterations 8 --checkpoint older --resume --log older.jsonl >/dev/null
  grep -q '"first_iteration":4' older.jsonl || fail "the third to last checkpoint: $(head -1 older.jsonl)"
  cmp older "seldom.$updater" || fail "$updater: resumed within an epoch: other bits"
  rm older
done
ranks 2 "${run[@]}" --updater parameter_server --iterations 6 --checkpoint served --checkpoint-every 2 --keep 9 >/dev/null
[ "$(ls served.* | wc -l)" -eq 2 ] || fail "iterations 2 and 4 are not kept: $(ls served*)"
# By time, which is so short that every meeting writes a checkpoint.
ranks 2 "${run[@]}" --iterations 4 --checkpoint timed --checkpoint-every 0.001s --keep 9 >/dev/null
[ "$(ls timed.* | wc -l)" -eq 3 ] || fail "by time: $(ls timed*)"

# PowerSGD goes on with the matrices and the residual that the checkpoint holds.
with=("${run[@]}" --updater power_sgd --eval-every 0 --checkpoint-every 3)
ranks 2 "${with[@]}" --iterations 8 --checkpoint low-rank --keep 3 >/dev/null
ranks 2 "${with[@]}" --iterations 8 --checkpoint low-rank.2 --resume --log low-rank.jsonl >/dev/null
grep -q '"first_iteration":3' low-rank.jsonl || fail "not after iteration 3: $(head -1 low-rank.jsonl)"
cmp low-rank low-rank.2 || fail "power_sgd: resumed: other bits"

# A resumed run prints one line for each difference and nothing else.
resumes() {
  local rate=$1
  shift
  ranks 1 "${run[@]/0.02/$rate}" --iterations 10 --eval-every 0 --checkpoint whole1 --resume "$@" >resumed || fail "$(cat resumed)"
}
resumes 0.020
! grep -q '^resumed' resumed || fail "said without a reason: $(cat resumed)"
resumes 0.01 --momentum 0.8 --seed 2
for line in 'with --lr 0.01, where the checkpoint.s run had 0.02' 'with --momentum 0.8, where .* had 0.9' \
  'with --seed 2, where .* had 1' 'with another data set: synthetic 32 px, whose pictures differ'; do
  grep -q "^resumed $line" resumed || fail "not said: $line: $(cat resumed)"
done
[ "$(grep -c '^resumed' resumed)" -eq 4 ] || fail "$(cat resumed)"
ranks 1 "${run[@]}" --iterations 1 --checkpoint nothing --resume | grep -q '^nothing: no checkpoint yet' || fail "a new run"

# On another number of ranks: after 6 iterations of 4 images there are 16 of 40 left, two iterations of 2 × 4.
ranks 1 "${run[@]}" --iterations 6 --checkpoint other >/dev/null
ranks 2 "${run[@]}" --epochs 1 --checkpoint other --resume --log other.jsonl >/dev/null
[ "$(grep -c '"event":"iteration"' other.jsonl)" -eq 2 ] || fail "on other ranks: $(cat other.jsonl)"
grep -q '"first_iteration":3' other.jsonl || fail "on other ranks: $(head -1 other.jsonl)"
ranks 1 "${run[@]}" --iterations 5 --checkpoint odd >/dev/null
status 1 mpirun --bind-to none -n 2 "$TRAIN" --threads 1 "${run[@]}" --epochs 1 --checkpoint odd --resume
grep -q 'odd: written after 20 images of an epoch, where this run takes 8 at a time' stderr || fail "$(cat stderr)"

# --keep-best: FILE.best is the checkpoint of the best evaluation of the whole run, of the part before it resumed as well.
best=(--synthetic --image-size 16 --width 0.125 --train-images 40 --test-images 30 --lr 0.05 --batch-size 4 --keep-best)
ranks 1 "${best[@]}" --epochs 3 --checkpoint kept --log kept.jsonl >/dev/null
ranks 1 "${best[@]}" --epochs 6 --checkpoint kept --resume --log kept.jsonl >/dev/null
ranks 1 "${best[@]/--keep-best/--evaluate-only}" --checkpoint kept.best --resume >evaluated
python3 - <<'PY'
import json
import re
epochs = [line for line in map(json.loads, open("kept.jsonl")) if line["event"] == "epoch"]
best = max(line["test_accuracy"] for line in epochs)
(percent,) = re.findall(r"test accuracy ([0-9.]+) %", open("evaluated").read())
assert len(epochs) == 6 and abs(float(percent) - 100 * best) < 0.01, (percent, epochs)
assert all(line["test_top5_accuracy"] >= line["test_accuracy"] for line in epochs), epochs
PY
rm kept
status 1 "$TRAIN" --threads 1 "${best[@]}" --epochs 1 --checkpoint kept
says "kept.best: exists already"
