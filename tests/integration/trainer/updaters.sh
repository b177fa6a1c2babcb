#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: updaters.sh PACELINE-TRAIN
# Every updater in whole runs: its log, an orderly stop, and no rank left waiting at any end.
source "$(dirname "$0")/setup.sh"
run=(--synthetic --image-size 32 --width 0.125 --train-images 40 --test-images 4 --lr 0.005 --batch-size 4 --schedule constant)
updaters=(allreduce main_rank sharded overlap double_buffering local_sgd top_k power_sgd parameter_server)

# limited COMMAND…: status 124 when it hangs.
limited() { timeout 60 mpirun --bind-to none "$@"; }

# logged FILE COUNT: waits until the log has so many iterations.
logged() {
  until [ $(($(grep -c '"event":"iteration"' "$1" 2>/dev/null) + 0)) -ge "$2" ]; do sleep 0.05; done
}

# below PID: its children and theirs.
below() {
  local pid
  for pid in $(pgrep -P "$1"); do
    echo "$pid"
    below "$pid"
  done
}

# rank_of JOB RANK: the process of a rank.
rank_of() {
  local pid
  for pid in $(below "$1"); do
    if grep -qzx "OMPI_COMM_WORLD_RANK=$2" "/proc/$pid/environ" 2>/dev/null; then echo "$pid"; fi
  done
}

status 2 "$TRAIN" "${run[@]}" --updater carrier_pigeon
says "carrier_pigeon"
status 2 "$TRAIN" "${run[@]}" --bucket-mb 4
says "--bucket-mb only applies to --updater overlap"
status 2 "$TRAIN" "${run[@]}" --fault tiny-buckets
says "tiny-buckets" "overlap"
status 2 "$TRAIN" "${run[@]}" --updater overlap --fault tiny-buckets --bucket-mb 4
says "tiny-buckets" "--bucket-mb"
status 2 "$TRAIN" "${run[@]}" --fault slow-rank=1:50
says "there is no rank 1"
status 2 limited -n 2 "$TRAIN" "${run[@]}" --updater single
[ "$(grep -c -- '--updater single: is for one rank' stderr)" -eq 1 ] || fail "$(cat stderr)"
status 2 limited -n 2 "$TRAIN" "${run[@]}" --updater main_rank --communicator ring
[ "$(grep -c -- '--updater main_rank: .*--communicator ring' stderr)" -eq 1 ] || fail "$(cat stderr)"

status 2 limited -n 2 "$TRAIN" "${run[@]}" --updater sharded --communicator halving_doubling
[ "$(grep -c -- '--updater sharded: communicator halving_doubling has no reduce-scatter: take mpi, ring or pure_nccl' stderr)" -eq 1 ] ||
  fail "$(cat stderr)"
for wrong in "local_sgd --allreduce-dtype f16" "power_sgd --allreduce-dtype bf16" "top_k --communicator ring"; do
  read -ra options <<<"$wrong"
  status 2 "$TRAIN" "${run[@]}" --updater "${options[@]}"
  says "--updater ${options[0]}" "leave out ${options[1]} ${options[2]}"
done
status 2 "$TRAIN" "${run[@]}" --updater top_k --device auto
says "--updater top_k: not available on GPUs"
status 2 "$TRAIN" "${run[@]}" --local-steps 4
says "--local-steps only applies to --updater local_sgd, not to allreduce"
status 2 "$TRAIN" "${run[@]}" --updater sharded --optimizer lars
says "--optimizer lars: needs the norms of whole layers"

# One rank's request to stop stops all ranks, with a checkpoint that can be resumed.
for updater in "${updaters[@]}"; do
  with=("${run[@]}" --threads 1 --updater "$updater" --checkpoint "$updater.checkpoint" --log "$updater.jsonl")
  limited -n 2 "$TRAIN" "${with[@]}" --iterations 100000 --eval-every 0 >/dev/null 2>stderr &
  job=$!
  logged "$updater.jsonl" 3
  kill -TERM "$(rank_of "$job" 1)"
  got=0
  wait "$job" || got=$?
  [ "$got" -eq 1 ] || fail "$updater: status $got when interrupted: $(cat stderr)"
  grep -q 'interrupted: stopped after iteration' stderr || fail "$updater: $(cat stderr)"
  done=$(sed -n 's/.*stopped after iteration \([0-9]*\) of.*/\1/p' stderr)
  limited -n 2 "$TRAIN" "${with[@]}" --iterations $((done + 2)) --resume >/dev/null 2>stderr || fail "$updater: $(cat stderr)"
  python3 - "$updater" "$done" <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1] + ".jsonl")]
starts = [line for line in lines if line["event"] == "start"]
assert [start["updater"] for start in starts] == [sys.argv[1]] * 2, starts
assert starts[1]["first_iteration"] == int(sys.argv[2]), (starts[1], sys.argv[2])
assert lines[-1]["event"] == "end" and "test_accuracy" in lines[-1], lines[-1]
iterations = [line for line in lines if line["event"] == "iteration"]
assert all(("staleness" in line) == (sys.argv[1] == "parameter_server") for line in iterations)
PY
done

# The parameter server's measurements in the log: 2 ranks, 5 iterations in an epoch, 2 epochs.
ranks 2 "${run[@]}" --updater parameter_server --max-ahead 0 --epochs 2 --log server.jsonl >stdout
grep -q '^staleness in epoch 2: .* of 10 updates on average, . at most$' stdout || fail "$(cat stdout)"
python3 - <<'PY'
import json
reports = [line for line in map(json.loads, open("server.jsonl")) if line["event"] == "staleness"]
assert [report["epoch"] for report in reports] == [1, 2], reports
for number, report in enumerate(reports):
    assert report["updates"] == 10 == sum(report["histogram"]), report
    assert report["max"] <= 1 and len(report["histogram"]) <= 2, report
    assert [rank["updates"] for rank in report["ranks"]] == [5, 5], report
    for rank in report["ranks"]:
        assert rank["first_version"] == 10 * number, report
        assert rank["sum"] + rank["updates"] <= rank["last_version"] - rank["first_version"], report
    total = sum(rank["sum"] for rank in report["ranks"])
    assert total == sum(s * count for s, count in enumerate(report["histogram"])), report
    assert abs(report["mean"] - total / 10) < 1e-9, report
PY

# A rank that dies, has a full disk or a loss that is not finite ends the whole job, with communication in any thread.
for updater in allreduce overlap parameter_server; do
  rm -f dying.jsonl
  limited -n 3 "$TRAIN" "${run[@]}" --threads 1 --updater "$updater" --iterations 100000 --log dying.jsonl >/dev/null 2>stderr &
  job=$!
  logged dying.jsonl 2
  kill -KILL "$(rank_of "$job" 2)"
  got=0
  wait "$job" || got=$?
  [ "$got" -ne 0 ] && [ "$got" -ne 124 ] || fail "$updater: status $got after a rank was killed"
  got=0
  limited -n 2 "$TRAIN" "${run[@]/0.005/1e38}" --threads 1 --updater "$updater" --iterations 30 >/dev/null 2>stderr || got=$?
  [ "$got" -eq 1 ] || fail "$updater: status $got for a loss that is not finite"
  grep -q 'rank [01] on .*no longer a finite number in iteration [0-9]*, at learning rate [0-9e.+]*, from layer [a-z0-9.]* on: lower --lr' stderr ||
    fail "$updater: $(cat stderr)"
done
got=0
# (A directory with the name of the temporary file prevents the checkpoint from being written.)
limited -n 2 bash -c 'mkdir "full.$$.partial"; exec "$0" "$@"' "$TRAIN" "${run[@]}" --threads 1 --updater overlap --epochs 1 \
  --checkpoint full >/dev/null 2>stderr || got=$?
[ "$got" -eq 1 ] || fail "status $got where the checkpoint could not be written"
grep -q 'paceline-train: rank 0 on .*full: cannot be written' stderr || fail "$(cat stderr)"

# Ranks that cannot run the same job are named before the first step.
limited -n 1 "$TRAIN" "${run[@]}" : -n 1 "$TRAIN" "${run[@]}" --seed 7 >stdout 2>stderr && fail "another seed was not seen"
grep -q "rank 1 on .*: other options than rank 0 on $(hostname): --seed 7, there 1" stderr || fail "$(cat stderr)"
[ ! -s stdout ] || fail "a step was made: $(cat stdout)"
"$TRAIN" make-dataset data --train 40 --test 5 >/dev/null
"$TRAIN" make-dataset other --train 40 --test 5 --seed 2 >/dev/null
limited -n 2 "$TRAIN" --data data --batch-size 4 --threads 1 : -n 1 "$TRAIN" --data other --batch-size 4 --threads 1 \
  >stdout 2>stderr && fail "other data were not seen"
grep -q "rank 2 on .*: other data than the other ranks have" stderr || fail "$(cat stderr)"
