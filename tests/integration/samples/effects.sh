#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
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
[ "$(cat said)" = "effects.py: --only: no run 'nonesuch'; there are small, large, constant_warmup, gradual_warmup, same_without_lars, lars, whole_batch_norm, growing_batch, double_buffering, fp16_allreduce" ] || fail "$(cat said)"
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
# Holm: the least p times the number of comparisons, the next times one less, never below the one before.
assert [round(p, 6) for p in effects.holm([0.04, 0.01, 0.011, 0.5], 4)] == [0.08, 0.04, 0.04, 0.5]
assert [round(p, 6) for p in effects.holm([0.01, 0.02], 9)] == [0.09, 0.16], "comparisons that are not there count"
assert effects.holm([0.9], 9) == [1.0]
more_low, more_high = low + [0.0], high + [11.0]
assert effects.verdict(more_high, more_low, 0.002, 0.019) == "seen: better (p = 0.002, corrected 0.019)"
assert effects.verdict(more_low, more_high, 0.002, 0.019).startswith("seen: worse")
assert effects.verdict(more_low, more_high, 0.008, 0.071) == "not seen (p = 0.008, corrected 0.071)"
assert effects.verdict(low, high, 0.008, 0.008) == "too few seeds"
# The fewest seeds are those with which all comparisons can be seen at once.
import math
def least(seeds): return 2 / math.comb(2 * seeds, seeds) * len(effects.COMPARISONS)
assert least(effects.FEWEST_SEEDS) < effects.SEEN_BELOW <= least(effects.FEWEST_SEEDS - 1)
# LARS and its opponent differ in LARS alone.
runs = effects.options_of(effects.SIZES["usual"])
assert {key for key in runs["lars"] if runs["lars"][key] != runs["same_without_lars"].get(key)} == {"optimizer", "lars-trust"}

result = json.load(open(sys.argv[2]))
assert len(result["test_accuracies"]) == 6 and result["accuracy"] == statistics.median(result["test_accuracies"][-5:]), result
PY
[ "$(head -1 out/results.csv)" = run,seed,epoch,test_accuracy ] || fail "$(head -1 out/results.csv)"
[ "$(grep -c '^small,1,[1-6],[01]' out/results.csv)" -eq 6 ] || fail "$(cat out/results.csv)"
grep -q '^small,1,0,--model=resnet18 ' out/runs.csv || fail "$(cat out/runs.csv)"
echo '{' >out/results/small-seed1.json
"${effects[@]}" --table >/dev/null 2>said && fail "half a result was taken"
grep -q 'small-seed1.json: no result of a run: delete it' said || fail "$(cat said)"
