#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: variants.sh PACELINE-TRAIN
# Each variant of model and batch norm has its effect in a whole run, and a run can resume on another number of ranks.
source "$(dirname "$0")/setup.sh"
run=(--synthetic --image-size 32 --train-images 32 --test-images 24 --width 0.125 --schedule constant --warmup none
     --weight-decay 0 --augment none)

# once NAME RANKS BATCH OPTIONS…: one iteration; its checkpoint is NAME, its log NAME.jsonl.
once() {
  local name=$1 count=$2 batch=$3
  shift 3
  ranks "$count" "${run[@]}" --lr "${rate:-0.01}" --batch-size "$batch" --iterations 1 --checkpoint "$name" --log "$name.jsonl" "$@" >/dev/null
}

once plain 1 8
once two_ranks 2 4
once synced 2 4 --sync-batch-norm
once ghosts 1 8 --ghost-batch 4
once last 1 8 --batch-norm-statistics last
rate=1e-9 once zero_gamma 1 8 --zero-gamma
rate=1e-9 once small_rate 1 8
once v15 1 4 --model resnet50
once v1 1 4 --model resnet50 --resnet-v1

# Each rank has its own statistics. An evaluation uses their mean, and training goes on with each rank's own.
go=("${run[@]}" --lr 0.01 --batch-size 4 --checkpoint)
ranks 2 "${go[@]}" seen --iterations 8 --log seen.jsonl >/dev/null
ranks 2 "${go[@]}" unseen --iterations 8 --eval-every 0 >/dev/null
cmp seen unseen || fail "an evaluation changed the run"
cp seen alone
ranks 1 "${go[@]}" alone --epochs 1 --resume --log alone.jsonl >/dev/null
ranks 3 "${go[@]}" seen --epochs 1 --resume --log three.jsonl >/dev/null

# On another number of ranks, without batch statistics: the same steps.
same=("${run[@]}" --lr 0.01 --freeze-batch-norm --iterations)
ranks 1 "${same[@]}" 4 --batch-size 8 --checkpoint whole >/dev/null
ranks 2 "${same[@]}" 2 --batch-size 4 --checkpoint to_one >/dev/null
ranks 1 "${same[@]}" 4 --batch-size 8 --checkpoint to_one --resume >/dev/null
ranks 4 "${same[@]}" 1 --batch-size 2 --checkpoint to_two >/dev/null
ranks 2 "${same[@]}" 4 --batch-size 4 --checkpoint to_two --resume >/dev/null

python3 - <<'PY'
import array, json, math

class Checkpoint:
    def __init__(self, name):
        content = open(name, "rb").read()
        start = content.index(b"\n") + 1
        length = int.from_bytes(content[start:start + 8], "little")
        self.header = json.loads(content[start + 8:start + 8 + length])
        self.values = array.array("f", content[start + 8 + length:-8])
        self.parameters, at = {}, 0
        for parameter in self.header["parameters"]:
            size = math.prod(parameter["shape"])
            self.parameters[parameter["name"]] = self.values[at:at + size]
            at += size
        self.statistics = self.values[at:at + self.header["statistics"]]
        of_ranks = self.values[len(self.values) - self.header["ranks"] * self.header["statistics"]:]
        count = self.header["statistics"]
        self.of_ranks = [of_ranks[i * count:(i + 1) * count] for i in range(self.header["ranks"])]

def log(name, event):
    return [line for line in map(json.loads, open(name + ".jsonl")) if line["event"] == event]

def loss(name):
    return log(name, "iteration")[0]["loss"]

def apart(a, b):  # of two checkpoints' weights, relative to the weights
    a, b = Checkpoint(a).parameters, Checkpoint(b).parameters
    assert a.keys() == b.keys()
    difference = sum((x - y) ** 2 for name in a for x, y in zip(a[name], b[name]))
    return math.sqrt(difference / sum(x * x for name in a for x in a[name]))

def near(a, b, limit):
    return abs(a - b) <= limit * abs(b)

# Two ranks normalise separately, which gives another loss, and so do ghost batches of the same images.
assert not near(loss("two_ranks"), loss("plain"), 1e-4), (loss("two_ranks"), loss("plain"))
assert near(loss("synced"), loss("plain"), 1e-5) and apart("synced", "plain") < 1e-5, (loss("synced"), apart("synced", "plain"))
assert near(loss("ghosts"), loss("two_ranks"), 1e-5), (loss("ghosts"), loss("two_ranks"))
assert apart("ghosts", "two_ranks") < 1e-5 < 1e-4 < apart("plain", "two_ranks"), apart("plain", "two_ranks")

# A moving average goes from 0 and 1 a tenth of the way to the last batch's means and variances.
average, last = Checkpoint("plain").statistics, Checkpoint("last").statistics
assert loss("last") == loss("plain")
assert all(math.isclose(a, 0.1 * b, rel_tol=1e-3, abs_tol=1e-5) or math.isclose(a, 0.9 + 0.1 * b, rel_tol=1e-3, abs_tol=1e-5)
           for a, b in zip(average, last))
assert max(abs(a - b) for a, b in zip(average, last)) > 0.1
assert log("last", "epoch")[0]["test_loss"] != log("plain", "epoch")[0]["test_loss"]

# The scale of the last batch norm of each of the eight blocks starts at 0.
def zeros(name):
    return [key for key, values in Checkpoint(name).parameters.items()
            if key.endswith(".weight") and max(map(abs, values)) < 1e-6]
assert len(zeros("zero_gamma")) == 8 and zeros("small_rate") == [], (zeros("zero_gamma"), zeros("small_rate"))
assert all("bn2" in name for name in zeros("zero_gamma")), zeros("zero_gamma")

# The stride in the first convolution saves operations.
def flops(name):
    epoch = log(name, "epoch")[0]
    return epoch["gflops"] / epoch["images_per_s"]
assert flops("v1") < 0.97 * flops("v15"), (flops("v1"), flops("v15"))
assert not near(loss("v1"), loss("v15"), 1e-4), loss("v1")

seen = Checkpoint("seen")
assert max(abs(a - b) for a, b in zip(*seen.of_ranks[:2])) > 1e-3, "the ranks have the same statistics"
expected = log("seen", "epoch")[-1]
for name in ("alone", "three"):
    (end,) = log(name, "end")
    assert near(end["test_loss"], expected["test_loss"], 1e-5) and end["test_accuracy"] == expected["test_accuracy"], (name, end, expected)

for name in ("to_one", "to_two"):
    assert apart(name, "whole") < 1e-5, (name, apart(name, "whole"))
    assert Checkpoint(name).header["iteration"] == 4
PY
