#!/usr/bin/env bash
# usage: resume.sh PACELINE-TRAIN
# A run that stops and goes on ends with the same bits as one that never stopped.
source "$(dirname "$0")/setup.sh"
run=(--synthetic --image-size 8 --train-images 40 --test-images 4 --lr 0.02 --batch-size 4 --schedule constant)

# 10 iterations an epoch on 1 rank, stopped in mid-epoch; 5 on 2 ranks, stopped at an epoch's end.
for stop in 1:3 2:5; do
  count=${stop%:*}
  ranks "$count" "${run[@]}" --iterations 8 --checkpoint "whole$count" >/dev/null
  ranks "$count" "${run[@]}" --iterations "${stop#*:}" --checkpoint "parts$count" >/dev/null
  ranks "$count" "${run[@]}" --iterations 8 --checkpoint "parts$count" --resume >/dev/null
  cmp "whole$count" "parts$count" || fail "resumed on $count ranks: other weights"
done

# Interrupted in mid-run: a line, a checkpoint, status 1; then on to the same end.
"$TRAIN" --threads 1 "${run[@]}" --iterations 100000 --checkpoint stopped --log stopped.jsonl >/dev/null 2>stderr &
until [ "$(grep -c '"iteration"' stopped.jsonl 2>/dev/null)" -ge 3 ]; do sleep 0.1; done
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
