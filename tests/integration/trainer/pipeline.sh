#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: pipeline.sh PACELINE-TRAIN
# Pipelines in whole runs: grids of stages and replicas train like one rank, and go on from each other's checkpoints.
source "$(dirname "$0")/setup.sh"
export OMPI_MCA_rmaps_base_oversubscribe=1
run=(--synthetic --image-size 16 --width 0.125 --train-images 32 --test-images 9 --lr 0.02 --schedule constant
  --freeze-batch-norm --augment none --eval-every 0)

# same A B LIMIT: no parameter of two checkpoints, nor its momentum, differs by more, relative to its norm.
cat >same.py <<'PY'
import array, json, math, sys

def arrays(name):
    content = open(name, "rb").read()
    at = content.index(b"\n") + 1
    length = int.from_bytes(content[at:at + 8], "little")
    header = json.loads(content[at + 8:at + 8 + length])
    values = array.array("f", content[at + 8 + length:-8])
    at, parts = 0, {}
    for what in ["weights", "statistics", "momentum"]:
        if what == "statistics":
            at += header["statistics"]
            continue
        for parameter in header["parameters"]:
            count = math.prod(parameter["shape"])
            parts[what, parameter["name"]] = values[at:at + count]
            at += count
    assert at + header["ranks"] * header["statistics"] == len(values), (at, len(values))
    return header["iteration"], parts

(iteration, a), (other, b) = arrays(sys.argv[1]), arrays(sys.argv[2])
assert iteration == other and a.keys() == b.keys()
for name in a:
    norm = math.sqrt(sum(x * x for x in b[name]))
    difference = math.sqrt(sum((x - y) ** 2 for x, y in zip(a[name], b[name])))
    assert difference <= float(sys.argv[3]) * norm, (name, difference / norm)
PY
same() { python3 same.py "$@" || fail "$1 and $2 differ"; }

# grid STAGES REPLICAS MICROBATCHES OPTIONS…: a run of 8 images in an iteration.
grid() {
  local stages=$1 replicas=$2 microbatches=$3
  shift 3
  ranks $((stages * replicas)) "${run[@]}" --batch-size $((8 / replicas)) --pipeline-stages "$stages" \
    --microbatches "$microbatches" "$@"
}

# Refusals, one line each.
refused() {
  local text=$1
  shift
  status 2 "$TRAIN" "${run[@]}" "$@"
  says "$text"
}
refused "--pipeline-stages: does not work with --updater sharded: take --updater allreduce" --pipeline-stages 2 --updater sharded
refused "--pipeline-stages: pipelines are for CPUs: take --device cpu" --pipeline-stages 2 --device auto
refused "--microbatches 3: does not divide --batch-size 8" --batch-size 8 --microbatches 3
refused "--microbatches: the batch is divided already" --microbatches 2 --accumulate 2
refused "--pipeline-split has no effect with --pipeline-stages 1" --pipeline-split operations
refused "--deterministic: measured times differ" --pipeline-stages 2 --deterministic
refused "--pipeline-stages 2: does not divide the 1 ranks" --pipeline-stages 2
refused "--fault slow-layers: only applies to --pipeline-stages" --fault slow-layers=10
status 2 ranks 2 "${run[@]}" --pipeline-stages 2 --pipeline-split layer9
grep -q "cannot be cut before a layer 'layer9'" stderr || fail "$(cat stderr)"

# One step on every grid equals that of one rank. The measured split is used once.
grid 1 1 1 --iterations 1 --checkpoint one >/dev/null
grid 2 1 1 --iterations 1 --checkpoint 2x1 >stdout
grep -q '^stages by measured time: from conv1 .* ms (.* %), from layer' stdout || fail "$(cat stdout)"
grid 2 2 2 --iterations 1 --checkpoint 2x2 --pipeline-split layer2 --pipeline-schedule 1f1b >/dev/null
grid 4 1 4 --iterations 1 --checkpoint 4x1 --pipeline-split operations --log 4x1.jsonl >/dev/null
for other in 2x1 2x2 4x1; do same "$other" one 1e-5; done
python3 - <<'PY'
import json
lines = [json.loads(line) for line in open("4x1.jsonl")]
start, end = lines[0], lines[-1]
assert (start["pipeline_stages"], start["microbatches"], start["pipeline_schedule"]) == (4, 4, "gpipe"), start
assert len(start["pipeline_split"].split(",")) == 3 and start["global_batch"] == 8 and start["ranks"] == 4, start
assert end["images"] == 8, end
assert [line["test_images"] for line in lines if line["event"] == "epoch"][-1:] in ([9], []), lines
PY

# Checkpoints move between grids, and a run that stops and resumes on its grid has the bits of one that never stopped.
# Statistics of batch norms are each replica's own here.
run=("${run[@]/--freeze-batch-norm/--nesterov}")
grid 1 1 1 --iterations 4 --checkpoint whole >/dev/null
grid 1 1 1 --iterations 2 --checkpoint moving >/dev/null
grid 2 1 1 --iterations 3 --checkpoint moving --resume --pipeline-split operations >/dev/null
grid 4 1 1 --iterations 4 --checkpoint moving --resume --pipeline-split operations >/dev/null
same moving whole 1e-4
with=(--pipeline-split operations --pipeline-schedule 1f1b --deterministic)
grid 2 2 2 --iterations 4 --checkpoint unstopped "${with[@]}" >/dev/null
grid 2 2 2 --iterations 2 --checkpoint stopped "${with[@]}" >/dev/null
grid 2 2 2 --iterations 4 --checkpoint stopped --resume "${with[@]}" >/dev/null
cmp unstopped stopped || fail "a resumed pipeline has other bits"
grid 1 2 1 --iterations 4 --checkpoint stopped --resume --evaluate-only >alone
grid 2 2 1 --iterations 4 --checkpoint stopped --resume --evaluate-only >staged
grep 'test accuracy' alone >a && grep 'test accuracy' staged >b && cmp a b || fail "$(cat alone staged)"

# A loss that is not finite ends the run and names the layer.
status 1 timeout 60 mpirun --bind-to none -n 2 "$TRAIN" --threads 1 "${run[@]/0.02/1e38}" --batch-size 8 --pipeline-stages 2 \
  --microbatches 2 --iterations 30
grep -q 'no longer a finite number .*from layer [a-z0-9.]* on: lower --lr' stderr || fail "$(cat stderr)"
