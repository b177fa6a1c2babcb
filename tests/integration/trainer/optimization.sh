#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: optimization.sh PACELINE-TRAIN
# Optimizers, growing batches and settings in whole runs, on a network of few channels.
source "$(dirname "$0")/setup.sh"
run=(--synthetic --image-size 32 --train-images 40 --test-images 4 --batch-size 4 --width 0.125 --lr 0.01
     --eval-every 0)

# The checkpoint holds the optimizer's whole state: a run that stops within an epoch and resumes gives the same bits.
again=--overwrite-checkpoint
for optimizer in "sgd --rate-position corrected --nesterov" lars adam "adamw --clip-grad-norm 0.5 --label-smoothing 0.1" rmsprop_warmup; do
  read -ra options <<<"--optimizer $optimizer"
  "$TRAIN" --threads 1 "${run[@]}" "${options[@]}" --schedule constant --iterations 4 --checkpoint parts $again >/dev/null
  "$TRAIN" --threads 1 "${run[@]}" "${options[@]}" --schedule constant --iterations 7 --checkpoint parts --resume >/dev/null
  "$TRAIN" --threads 1 "${run[@]}" "${options[@]}" --schedule constant --iterations 7 --checkpoint whole $again >/dev/null
  cmp whole parts || fail "$optimizer: resumed with other weights"
done
status 1 "$TRAIN" --threads 1 "${run[@]}" --optimizer adam --iterations 9 --checkpoint whole --resume
says "whole: the checkpoint of --optimizer rmsprop_warmup, not adam"

status 2 "$TRAIN" "${run[@]}" --clip-grad-norm 1 --updater parameter_server
says "--clip-grad-norm has no effect with --updater parameter_server"
status 2 "$TRAIN" "${run[@]}" --clip-grad-norm 0
says "--clip-grad-norm: expected a number above 0"
status 2 "$TRAIN" "${run[@]}" --label-smoothing 1.5
says "--label-smoothing: expected a number from 0 to 1, got '1.5'"
status 2 "$TRAIN" "${run[@]}" --optimizer adamw --momentum 0.9
says "--momentum only applies to --optimizer sgd, lars, rmsprop_warmup, not to adamw"

# The batch doubles at epochs 1 and 2: 10, 5 and 2 iterations of 4, 8 and 16 of the 40 images.
grow=("${run[@]}" --schedule step --lr-steps "1,2" --grow-batch 2 --warmup none)
"$TRAIN" --threads 1 "${grow[@]}" --epochs 3 --checkpoint grown --log grown.jsonl >/dev/null
python3 - <<'PY'
import json
lines = [json.loads(line) for line in open("grown.jsonl")]
events = [line["event"] for line in lines if line["event"] in ("iteration", "epoch")]
assert events == ["iteration"] * 10 + ["epoch"] + ["iteration"] * 5 + ["epoch"] + ["iteration"] * 2 + ["epoch"], events
assert lines[-1]["images"] == 40 + 40 + 32, lines[-1]
assert [line["epoch"] for line in lines if line["event"] == "epoch"] == [1, 2, 3]
PY
"$TRAIN" --threads 1 "${grow[@]}" --iterations 12 --checkpoint regrown >/dev/null
"$TRAIN" --threads 1 "${grow[@]}" --iterations 17 --checkpoint regrown --resume >/dev/null
cmp grown regrown || fail "a growing batch: resumed with other weights"
status 1 "$TRAIN" --threads 1 "${run[@]}" --schedule step --lr-steps 1 --grow-batch 20 --epochs 3
says "40 training images are fewer" "--grow-batch-limit"
"$TRAIN" --threads 1 "${run[@]}" --schedule step --lr-steps 1,2 --grow-batch 20 --epochs 1 >/dev/null || fail "the run ends before"
"$TRAIN" --threads 1 "${run[@]}" --schedule step --lr-steps 1,2 --grow-batch 20 --iterations 10 --checkpoint wall >/dev/null || fail "here, too"
"$TRAIN" --threads 1 "${run[@]}" --schedule step --lr-steps 1,2 --grow-batch 20 --iterations 10 --checkpoint wall --resume >stdout
grep -q 'of a complete run: test accuracy [0-9.]* % ([0-9]* of' stdout || fail "not resumed"
! grep -q ' images in ' stdout || fail "a speed of nothing: $(cat stdout)"
status 1 "$TRAIN" --threads 1 "${run[@]}" --schedule step --lr-steps 1,2 --grow-batch 20 --iterations 11
says "40 training images are fewer" "--grow-batch-limit"

# Settings of a file and a preset, with the command line above both.
printf 'preset = "lecture-2gpu"\nsynthetic = true\nimage-size = 32\nwidth = 0.0625\nbatch-size = 4\niterations = 1\n' >run.toml
"$TRAIN" --threads 1 --config run.toml --train-images 8 --test-images 2 --lr 0.03 --log set.jsonl >/dev/null
python3 -c '
import json
start = json.loads(open("set.jsonl").readline())
assert (start["model"], start["batch_per_rank"], start["lr"]) == ("vgg_lecture width 0.0625", 4, 0.03), start'
