#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: two_nodes.sh DIRECTORY-OF-PROGRAMS       ends with 77 where network namespaces cannot be made
# The two nodes' network is as slow as it is asked to be, and what trains across it is reported.
source "$(dirname "$0")/setup.sh"
nodes=$samples/two_nodes/nodes.sh
"$nodes" true || exit 77
got=0
"$nodes" --rate fast true 2>said || got=$?
[ "$got" -eq 2 ] && grep -q 'nodes.sh: --rate fast ' said || fail "status $got: $(cat said)"

source "$samples/programs.sh"
# Each node sends and gets 4 MB: 0.168 s at 200 Mbit/s, of which the first 256 kB may pass at once.
for rate in unlimited 200mbit; do
  quietly "$nodes" --rate $rate mpirun --bind-to none --map-by node -n 2 paceline-train bench-allreduce --sizes 4M \
    --iterations 3 --communicators mpi
  mv said $rate
done
quietly "$samples/lectures/two_nodes.sh" tiny lecture
MODELS=vgg16_bn quietly "$samples/two_nodes/slow_network.sh" tiny slow

for run in blocking-f32 blocking-f16 double-buffering-f16; do paceline export --to csv -o $run.csv "slow/vgg16_bn/$run"; done
python3 - <<'PY'
import csv
import json

def microseconds(name):
    (row,) = [line.split() for line in open(name) if line.split()[0].isdigit()]
    assert row[0] == str(4 << 20) and row[-1] == "0", row
    return float(row[3])
slow, fast = microseconds("200mbit"), microseconds("unlimited")
assert slow > 0.95e6 * 8 * ((4 << 20) - 256e3) / 200e6 and slow > 1.5 * fast, (slow, fast)

lecture = json.load(open("lecture/report.json"))
assert [(run["ranks"], len(run["hosts"])) for run in lecture["runs"]] == [(1, 1), (2, 1), (4, 2)], lecture["runs"]
assert {row["operation"] for row in lecture["runs"][2]["collectives"]} >= {"MPI_Reduce", "MPI_Alltoallv", "MPI_Bcast"}

runs = {run["path"]: run for run in json.load(open("slow/vgg16_bn/report.json"))["runs"]}
expected = {"1-rank": (1, "allreduce", "f32"), "unlimited-f32": (2, "allreduce", "f32"),
            "blocking-f32": (2, "allreduce", "f32"), "blocking-f16": (2, "allreduce", "f16"),
            "double-buffering-f32": (2, "double_buffering", "f32"), "double-buffering-f16": (2, "double_buffering", "f16")}
got = {name: (len(run["hosts"]), run["config"]["updater"], run["config"]["allreduce_dtype"]) for name, run in runs.items()}
assert got == expected, got

def gradients(name):  # bytes of each iteration on each rank, as the trainer's ranges have them
    with open(name + ".csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["name"] in ("allreduce", "bucket 0")]
    return sorted(payload for row in rows if (payload := json.loads(row["args"] or "{}").get("payload")))
half, whole = gradients("blocking-f16"), gradients("blocking-f32")
assert len(whole) == 2 * 3 and whole == [2 * payload for payload in half], (whole, half)
assert gradients("double-buffering-f16") == half, (gradients("double-buffering-f16"), half)
PY
