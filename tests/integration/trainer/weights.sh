#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: weights.sh PACELINE-TRAIN
# Weights of whole runs in and out, and evaluation without training.
source "$(dirname "$0")/setup.sh"
# Images above 64 pixels have the layers of torchvision's networks.
run=(--synthetic --image-size 72 --train-images 4 --test-images 6 --batch-size 2 --lr 0.001 --schedule constant)
small=(--synthetic --image-size 32 --width 0.125 --train-images 8 --test-images 4 --batch-size 4 --lr 0.01)

# accuracy FILE: test accuracy and loss of a run's last line of the log.
accuracy() { tail -1 "$1" | grep -o '"test_[a-z]*":[0-9.e+-]*'; }

# A run on two ranks exports what it evaluated at its end: the mean of the ranks' running statistics.
ranks 2 "${run[@]}" --epochs 1 --export-weights w.safetensors --checkpoint c --log trained.jsonl >stdout
grep -q "^w.safetensors: the weights of this run" stdout || fail "$(cat stdout)"
ranks 2 "${run[@]}" --import-weights w.safetensors --evaluate-only --log imported.jsonl --export-weights again.safetensors >stdout
grep -q '^evaluated without training: test accuracy [0-9.]* % ([0-9]* of 6' stdout || fail "$(cat stdout)"
[ "$(accuracy trained.jsonl)" = "$(accuracy imported.jsonl)" ] || fail "$(accuracy trained.jsonl) $(accuracy imported.jsonl)"
grep -q '"images":0' imported.jsonl || fail "it trained: $(tail -1 imported.jsonl)"

# The checkpoint of the same run gives the same, also for a run that is not complete.
ranks 2 "${run[@]}" --epochs 3 --checkpoint c --resume --evaluate-only --log resumed.jsonl --export-weights of-checkpoint.safetensors >stdout
[ "$(accuracy trained.jsonl)" = "$(accuracy resumed.jsonl)" ] || fail "$(accuracy resumed.jsonl)"
cmp again.safetensors of-checkpoint.safetensors || fail "other weights from the checkpoint"

# Training goes on from imported weights, on every rank.
ranks 2 "${run[@]}" --import-weights w.safetensors --iterations 1 --export-weights other.safetensors >/dev/null
! cmp -s w.safetensors other.safetensors || fail "no step was made"

# Fine-tuning: another number of classes, frozen layers, and more images in a batch than the set has.
ranks 2 "${run[@]}" --classes 3 --import-weights w.safetensors --freeze conv1,bn1,layer1,layer2 --iterations 2 \
  --export-weights three.safetensors >stdout
grep -q '^w.safetensors: its last layer has 10 classes, and this data set has 3: the last layer, fc, begins anew' stdout ||
  fail "$(cat stdout)"
python3 - <<'PY' || fail "frozen layers moved, or others did not"
import json, struct

def tensors(name):
    content = open(name, "rb").read()
    end = 8 + struct.unpack("<Q", content[:8])[0]
    return {name: content[end + at["data_offsets"][0] : end + at["data_offsets"][1]]
            for name, at in json.loads(content[8:end]).items() if name != "__metadata__"}

before, after = tensors("w.safetensors"), tensors("three.safetensors")
for name in before:
    if name.endswith((".weight", ".bias")):
        frozen = name.startswith(("conv1", "bn1", "layer1", "layer2"))
        assert (before[name] == after[name]) == frozen, name
PY
ranks 2 --synthetic --image-size 72 --train-images 4 --test-images 6 --batch-size 64 --classes 3 --import-weights three.safetensors \
  --evaluate-only >stdout
grep -q 'of 6 test images right' stdout || fail "$(cat stdout)"
status 1 "$TRAIN" "${run[@]}" --classes 3 --import-weights w.safetensors --evaluate-only
says "its last layer has 10 classes" "name the weights of this data set's classes"

# Every rank of a grid holds a part of the network. The file has the whole, and any grid reads it.
cat >close.py <<'PY'
import json, sys

a, b = (json.loads(open(name).readlines()[-1]) for name in sys.argv[1:])
assert a["test_accuracy"] == b["test_accuracy"] and abs(a["test_loss"] - b["test_loss"]) < 1e-5 * b["test_loss"], (a, b)
PY
grid=(--pipeline-split operations)
ranks 2 "${run[@]}" --pipeline-stages 2 "${grid[@]}" --import-weights w.safetensors --evaluate-only --log two.jsonl \
  --export-weights two.safetensors >/dev/null
ranks 4 "${run[@]}" --pipeline-stages 4 "${grid[@]}" --import-weights w.safetensors --evaluate-only --log four.jsonl \
  --export-weights four.safetensors >/dev/null
for stages in two four; do
  cmp again.safetensors "$stages.safetensors" || fail "$stages stages changed imported weights"
  python3 close.py "$stages.jsonl" imported.jsonl || fail "$stages stages evaluate otherwise"
done
ranks 4 "${run[@]}" --pipeline-stages 2 --microbatches 2 "${grid[@]}" --epochs 1 --log trained-grid.jsonl \
  --export-weights grid.safetensors >stdout
grep -q "^grid.safetensors: the weights of this run" stdout || fail "$(cat stdout)"
ranks 1 "${run[@]}" --import-weights grid.safetensors --evaluate-only --log alone.jsonl >/dev/null
python3 close.py trained-grid.jsonl alone.jsonl || fail "one rank evaluates a grid's weights otherwise"

# One line for each mistake.
status 2 "$TRAIN" "${small[@]}" --export-weights x
says "--export-weights: torchvision has no resnet18 of --width 0.125: use a model"
status 2 "$TRAIN" "${small[@]/0.125/1}" --export-weights x
says "--export-weights: the resnet18 for images of at most 64 pixels"
status 2 "$TRAIN" "${run[@]}" --model vgg_lecture --import-weights w.safetensors
says "--import-weights: torchvision has no vgg_lecture"
status 2 "$TRAIN" "${run[@]}" --evaluate-only
says "--evaluate-only: the run has no weights to evaluate"
status 1 "$TRAIN" "${run[@]}" --evaluate-only --checkpoint none --resume
says "none: there is no such file to evaluate"
status 1 "$TRAIN" "${run[@]}" --import-weights none
says "none: cannot be opened"
status 1 "$TRAIN" "${run[@]}" --import-weights .
says ".: it is not a regular file"
status 1 "$TRAIN" "${run[@]}" --import-weights c
says "c: not a safetensors file"
status 1 "$TRAIN" "${run[@]}" --model resnet34 --import-weights w.safetensors
says 'w.safetensors: tensor "layer1.2.conv1.weight" of a resnet34 is missing'
head -c 1000000 w.safetensors >cut.safetensors
status 1 "$TRAIN" "${run[@]}" --import-weights cut.safetensors
says "cut.safetensors: tensor" "its bytes end at"
status 1 "$TRAIN" "${run[@]}" --export-weights missing/x
says "missing/x: cannot be written"
status 2 "$TRAIN" "${run[@]}" --export-weights x --checkpoint x
says "x: --checkpoint and --export-weights are the same file"
