#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: faults.sh PACELINE-TRAIN PACELINE
# Each injected fault shows in the log and in the recorded ranges. The report names a slow rank as the straggler.
source "$(dirname "$0")/setup.sh"
paceline=$2
run=(--synthetic --image-size 32 --width 0.5 --train-images 64 --test-images 4 --batch-size 4 --iterations 6 --eval-every 0)

# recorded NAME ARGS…: two ranks under the recorder; the traces in NAME, as CSV in NAME.csv, the log in NAME.jsonl.
recorded() {
  local name=$1
  shift
  mpirun --bind-to none -n 2 "$paceline" record -o "$name" -- "$TRAIN" --threads 1 "${run[@]}" --log "$name.jsonl" "$@" >/dev/null
  "$paceline" export --to csv -o "$name.csv" "$name"
}

recorded slow --fault slow-rank=1:720
recorded loader --fault slow-loader=0:60
recorded shards --fault duplicate-shards
recorded tiny --updater overlap --fault tiny-buckets
recorded overlap --updater overlap
recorded double --updater double_buffering
recorded server --updater parameter_server
recorded sharded --updater sharded
"$paceline" report --format json slow >report.json
"$paceline" report --format json sharded >sharded.json
python3 - <<'PY'
import collections, csv, json

def rows(name):
    with open(name + ".csv", newline="") as file:
        return [dict(row, args=json.loads(row["args"] or "{}")) for row in csv.DictReader(file)]

def named(name, text):
    return [row for row in rows(name) if row["name"] == text]

def start(name):
    return json.loads(open(name + ".jsonl").readline())

report = json.load(open("report.json"))
ranks = report["runs"][0]["per_rank"]
waits = {rank["rank"]: rank["waits"] for rank in ranks}
# 720 ms in each of 6 iterations. Rank 0 is late too when it writes the log or the machine is busy.
assert waits[1]["caused_ns"] > 5 * 600e6 > 5 * waits[0]["caused_ns"], waits

# The layers' operations are those of the whole step, and both peaks are measured.
layers = report["runs"][0]["layers"]
operations = sum(row["flops"] for row in layers["work"])
assert abs(operations / (4 * start("slow")["flops_per_image"]) - 1) < 1e-9, (operations, start("slow"))
assert {(row["kind"], row["pass"]) for row in layers["work"]} >= {
    (kind, which) for kind in ("convolution 3×3", "batch norm", "linear") for which in ("forward", "backward")}, layers
assert 1e8 < layers["peak_flops"] < 1e14 and 1e7 < layers["peak_bytes_per_s"] < 1e13, layers

slow = named("slow", "slow-rank")
assert len(slow) == 6 and {row["rank"] for row in slow} == {"1"}, slow
assert all(int(row["duration_ns"]) >= 720e6 and row["category"] == "fault" for row in slow), slow
assert start("slow")["faults"] == ["slow-rank=1:720"], start("slow")
gradients = {rank: [int(row["start_ns"]) for row in named("slow", "MPI_Allreduce")
                    if row["rank"] == rank and row["args"].get("bytes", 0) > 1e6] for rank in "01"}
assert len(gradients["0"]) == len(gradients["1"]) == 6, gradients
late = [second - first for first, second in zip(gradients["0"], gradients["1"])]
assert min(late) > 360e6, late  # rank 0 is held up itself now and then, by less

loader = named("loader", "slow-loader")
assert len(loader) == 6 and {row["rank"] for row in loader} == {"0"}, loader
assert all(int(row["duration_ns"]) >= 60e6 for row in loader), loader
assert start("loader")["faults"] == ["slow-loader=0:60"]

def first_samples(name):
    by_rank = collections.defaultdict(list)
    for row in named(name, "preprocess"):
        if "payload" in row["args"]:  # the loader's; the main thread only waits
            by_rank[row["rank"]].append(row["args"]["payload"])
    return by_rank
duplicated, exact = first_samples("shards"), first_samples("loader")
assert len(duplicated["0"]) == 6 and duplicated["0"] == duplicated["1"], duplicated
assert len(exact["0"]) == 6 and not set(exact["0"]) & set(exact["1"]), exact
assert start("shards")["faults"] == ["duplicate-shards"]

def buckets(name, rank):
    return [row for row in rows(name) if row["rank"] == rank and row["name"].startswith("bucket ") and int(row["duration_ns"]) > 0]
parameters = 62  # of a ResNet-18 of any width
for rank in "01":
    assert len(buckets("tiny", rank)) == 6 * parameters, len(buckets("tiny", rank))
    few = buckets("overlap", rank)
    assert 6 * 2 <= len(few) <= 6 * 6, len(few)
    gradient = sum(row["args"]["payload"] for row in buckets("tiny", rank)) // 6
    assert sum(row["args"]["payload"] for row in few) == 6 * gradient > 6 * 11e6, gradient
    ready = [row for row in named("overlap", "bucket ready") if row["rank"] == rank]
    assert sorted(row["args"]["payload"] for row in ready) == sorted(row["args"]["payload"] for row in few)
    waits = [row for row in named("overlap", "wait") if row["rank"] == rank and row["category"] == "wait"]
    assert len(waits) == len(few), (len(waits), len(few))
    # After the first iteration, which determines the order, some buckets are ready before backward ends.
    backward = [(int(row["start_ns"]), int(row["start_ns"]) + int(row["duration_ns"]))
                for row in named("overlap", "backward") if row["rank"] == rank and row["category"] == "backward"]
    inside = [row for row in ready if any(begin < int(row["start_ns"]) < end for begin, end in backward)]
    assert len(inside) >= 5, len(inside)
    # Transfers run on their own thread.
    main = {row["track"] for row in named("overlap", "backward") if row["rank"] == rank}
    assert not main & {row["track"] for row in few}, main
    # The ranges of the layers' backward have the sizes of their gradients.
    layers = [row["args"].get("payload", 0) for row in rows("overlap") if row["rank"] == rank and row["category"] == "layer"]
    assert abs(sum(layers) / 6 - gradient) < 0.001 * gradient, (sum(layers), gradient)
    double = buckets("double", rank)
    assert len(double) == 6 and {row["args"]["payload"] for row in double} == {gradient}, double
    stale = [row["args"]["payload"] for row in named("server", "staleness") if row["rank"] == rank]
    assert len(stale) == 6, stale
assert start("tiny")["faults"] == ["tiny-buckets"]

# The sharded optimizer's exchanges are communication.
for rank in json.load(open("sharded.json"))["runs"][0]["per_rank"]:
    exchanges = [row for name in ("reduce-scatter", "all-gather") for row in named("sharded", name) if row["rank"] == str(rank["rank"])]
    assert len(exchanges) == 12 and {row["args"]["payload"] for row in exchanges} == {gradient}, exchanges
    spent = sum(int(row["duration_ns"]) for row in exchanges)
    assert rank["phases"]["communication"] >= spent > 0, (rank["phases"], spent)
logged = [json.loads(line) for line in open("server.jsonl")]
total = sum(rank["sum"] for line in logged if line["event"] == "staleness" for rank in line["ranks"])
assert total == sum(row["args"]["payload"] for row in named("server", "staleness")), total
described = [row["name"] for row in rows("overlap") if '"updater":"overlap"' in row["name"]]
assert len(described) == 2, described
PY
