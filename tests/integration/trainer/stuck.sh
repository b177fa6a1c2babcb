#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: stuck.sh PACELINE-TRAIN STALLED-READ.so
# Jobs that cannot go on end with a line that names the rank and the reason.
source "$(dirname "$0")/setup.sh"
stalled=$2
export PACELINE_TEST_GRACE_MS=500
"$TRAIN" make-dataset pictures --format jpeg --image-size 40 --train 30 --test 4 >/dev/null
tiny=(--width 0.125 --image-size 32 --batch-size 4 --threads 1 --eval-every 0)
victim=$(cd pictures && find train -name '*.jpg' | sort | tail -1)
stuck=(env LD_PRELOAD="$stalled" STALLED_PATH="$victim" STALLED_MARK=mark)

# ended JOB: waits for it; its status is in `got`.
ended() {
  got=0
  wait "$1" || got=$?
}

# marked JOB: waits until a rank of the job is stuck.
marked() {
  until [ -s mark ]; do
    kill -0 "$1" 2>/dev/null || fail "the job ended and was never stuck: $(cat stderr)"
    sleep 0.05
  done
}

# settled LOG: waits until the log has had no new line for a second.
settled() {
  local before=-1 now=0
  while [ "$before" -ne "$now" ]; do
    before=$now
    sleep 1
    now=$(wc -l <"$1")
  done
}

# below PID RANK: the process of this rank among what PID has started.
below() {
  local pid
  for pid in $(pgrep -P "$1"); do
    if grep -qzx "OMPI_COMM_WORLD_RANK=$2" "/proc/$pid/environ" 2>/dev/null; then echo "$pid"; fi
    below "$pid" "$2"
  done
}

# The loader of the only rank is stuck in a read: SIGTERM ends the job, and the message names the file.
"${stuck[@]}" "$TRAIN" --data pictures "${tiny[@]}" --epochs 3 --sharding equal-length --log one.jsonl >/dev/null 2>stderr &
job=$!
marked "$job"
settled one.jsonl
kill -TERM "$job"
ended "$job"
[ "$got" -eq 1 ] || fail "stuck in a read: status $got: $(cat stderr)"
says "interrupted in iteration" "its loader has had no image for" "$victim"
rm mark

# On two ranks the signal goes to the rank that waits for the other.
mpirun --bind-to none -n 2 "${stuck[@]}" "$TRAIN" --data pictures "${tiny[@]}" --epochs 3 --sharding equal-length \
  --log two.jsonl >/dev/null 2>stderr &
job=$!
marked "$job"
settled two.jsonl
reader=$(cat mark)
kill -TERM "$(below "$job" $((1 - reader)))"
ended "$job"
[ "$got" -ne 0 ] || fail "a rank is stuck in a read: status 0"
grep -q "interrupted in iteration [0-9]* while the loader of rank $reader on .* has had no image for" stderr ||
  fail "$(cat stderr)"

# A rank that is missing in a collective call is named: a rank that computes, and a stopped one.
synthetic=(--synthetic --train-images 64 --test-images 4 "${tiny[@]}" --comm-timeout 1)
status 1 mpirun --bind-to none -n 2 "$TRAIN" "${synthetic[@]}" --iterations 4 --fault slow-rank=1:600000
grep -q 'rank 0 on .*: an MPI .* of iteration 0 has waited [1-9][0-9]* s for rank 1 on .*, which has computed for' stderr ||
  fail "$(cat stderr)"
mpirun --bind-to none -n 2 "$TRAIN" "${synthetic[@]}" --iterations 1000000 --log log.jsonl >/dev/null 2>stderr &
job=$!
until grep -q '"iteration":2' log.jsonl 2>/dev/null; do sleep 0.05; done
kill -STOP "$(below "$job" 1)"
ended "$job"
[ "$got" -ne 0 ] || fail "a rank was stopped: status 0"
grep -q 'rank 0 on .*: an MPI .* has waited .* s for rank 1 on .*, which does not answer' stderr || fail "$(cat stderr)"
