#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records runs of paceline-train with an injected fault each, and checks that the report names the fault as what it is:
# a slow rank, a slow loader, a link with a limited rate between two network namespaces, and tiny buckets. A run without
# a fault must name none of them.
# usage: [ITERATIONS=200] injected_faults.sh PACELINE-TRAIN PACELINE     (needs root for the namespaces)
# On a busy machine, iterations are more alike, and more of them are needed before ranks are judged.
set -euo pipefail
train=$(realpath "$1") paceline=$(realpath "$2")
nodes=$(realpath "$(dirname "$0")/../../samples/two_nodes/nodes.sh")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# recorded NAME LAUNCHER… -- ARGS…: records two ranks, and writes the report to NAME.json.
recorded() {
  local name=$1 launcher=()
  shift
  while [ "$1" != -- ]; do launcher+=("$1") && shift; done
  shift
  "${launcher[@]}" "$paceline" record -o "$work/$name" -- "$train" --threads 1 --synthetic --image-size 32 \
    --train-images 512 --test-images 4 --batch-size 4 --eval-every 0 "$@" >/dev/null
  "$paceline" report --format json "$name" >"$name.json"
}

local_ranks=(mpirun --bind-to none --oversubscribe -n 2)
small=(--width 0.125 --iterations "${ITERATIONS:-200}")
recorded none "${local_ranks[@]}" -- "${small[@]}"
recorded slow-rank "${local_ranks[@]}" -- "${small[@]}" --fault slow-rank=1:100
recorded slow-loader "${local_ranks[@]}" -- "${small[@]}" --fault slow-loader=0:300
recorded tiny-buckets "${local_ranks[@]}" -- "${small[@]}" --updater overlap --fault tiny-buckets
recorded tiny-ring "${local_ranks[@]}" -- "${small[@]}" --communicator ring --updater overlap --fault tiny-buckets
recorded link "$nodes" --rate 100mbit mpirun --bind-to none --map-by node -n 2 -- --width 0.25 --iterations 20

python3 - <<'PY'
import json, sys

wrong = []
def check(true, *what):
    print("ok:    " if true else "WRONG: ", *what)
    if not true: wrong.append(what)

def run(name):
    return json.load(open(name + ".json"))["runs"][0]

def slow_ranks(name):
    return [(rank["rank"], rank.get("phase")) for rank in run(name).get("lateness", {}).get("slow_ranks", [])]

def slow_links(name):
    return [link["hosts"] for link in run(name).get("links", []) if link["slow"]]

rank, loader = slow_ranks("slow-rank"), slow_ranks("slow-loader")
check([number for number, _ in rank] == [1] and rank[0][1] != "preprocess", "slow rank 1:", rank)
check(loader == [(0, "preprocess")], "slow loader of rank 0:", loader)
check(len(slow_links("link")) == 1 and len(slow_links("link")[0]) == 2, "limited link:", slow_links("link"))
for name in ("tiny-buckets", "tiny-ring"):
    check("small_collectives" in run(name), "tiny buckets:", run(name).get("small_collectives"))
for name in ("none", "slow-rank", "slow-loader", "tiny-buckets"):
    check(not slow_links(name), "no limited link in", name, slow_links(name))
for name in ("none", "slow-rank", "slow-loader", "link"):
    check("small_collectives" not in run(name), "no tiny buckets in", name, run(name).get("small_collectives"))
for name in ("none", "tiny-buckets", "link"):
    check(not slow_ranks(name), "no slow rank in", name, slow_ranks(name))
sys.exit(bool(wrong))
PY
