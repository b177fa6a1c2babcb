#!/usr/bin/env bash
# usage: effects.sh DIRECTORY-OF-PROGRAMS
# The table of effects, of as few runs as there can be: what is finished is not run again, and figures are not invented.
source "$(dirname "$0")/setup.sh"
effects=("$samples/effects/effects.py" --size tiny --train "$PACELINE_BIN/paceline-train" --output "$work/out")
export PYTHONDONTWRITEBYTECODE=1

quietly "${effects[@]}" --seeds 1 --only small,fp16_allreduce
grep -q '^\[2/2\] fp16_allreduce, seed 1: [0-9.]* % in' said || fail "$(cat said)"
grep -q '^| fp16 allreduce .* too few seeds ' said || fail "$(cat said)"
rm out/results/fp16_allreduce-seed1.json  # as if it had been stopped here
quietly "${effects[@]}" --seeds 1 --only small,fp16_allreduce
grep -q '^1 of 2 runs are there already$' said && ! grep -q 'small, seed' said || fail "$(cat said)"
quietly "${effects[@]}" --seeds 1 --only small,fp16_allreduce
grep -q '^2 of 2 runs are there already$' said && ! grep -q 'seed 1:' said || fail "$(cat said)"

# All techniques' options are the trainer's.
"${effects[@]}" --seeds 1 --only nonesuch >/dev/null 2>said && fail "a run that is not there"
[ "$(cat said)" = "effects.py: --only: no run 'nonesuch'; there are small, large, constant_warmup, gradual_warmup, lars, whole_batch_norm, growing_batch, double_buffering, fp16_allreduce" ] || fail "$(cat said)"
PYTHONPATH=$samples/effects python3 - "$PACELINE_BIN/paceline-train" out/results/small-seed1.json <<'PY'
import json, statistics, subprocess, sys
import effects

def train(options, *others):
    done = subprocess.run([sys.argv[1], *effects.as_arguments(options), "--synthetic", "--threads=1", *others],
                          capture_output=True, text=True)
    assert done.returncode == 0, (options, done)
    return done.stdout

for name, options in effects.options_of(effects.SIZES["usual"]).items():
    assert "width = 0.25" in train(options, "--show-config"), name
for name, options in effects.options_of(effects.SIZES["tiny"]).items():
    assert "epoch 1/1" in train(options | {"epochs": 1}, "--image-size=32", "--train-images=64", "--test-images=4"), name
for size in effects.SIZES.values():
    assert max(int(epoch) for epoch in size.lr_steps.split(",")) <= size.epochs - effects.LAST_EPOCHS, size

names = set(effects.options_of(effects.SIZES["usual"]))
assert names == {c.run for c in effects.COMPARISONS} | {c.reference for c in effects.COMPARISONS}

# 5 against 5 figures: 252 ways to deal them.
low, high = [1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]
assert effects.permutation_p(low, high) == 2 / 252 and effects.permutation_p(low, low) == 1
assert effects.permutation_p([1.0, 2.0], [3.0, 4.0]) == 2 / 6
assert effects.verdict(high, low) == "seen: better (p = 0.008)" and effects.verdict(low, high).startswith("seen: worse")
assert effects.verdict([1.0, 3.0, 5.0, 7.0], [2.0, 4.0, 6.0, 8.0]).startswith("not seen")

result = json.load(open(sys.argv[2]))
assert len(result["test_accuracies"]) == 6 and result["accuracy"] == statistics.median(result["test_accuracies"][-5:]), result
PY
echo '{' >out/results/small-seed1.json
"${effects[@]}" --table >/dev/null 2>said && fail "half a result was taken"
grep -q 'small-seed1.json: no result of a run: delete it' said || fail "$(cat said)"
