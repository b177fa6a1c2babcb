#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: lectures.sh DIRECTORY-OF-PROGRAMS
# Each experiment on one machine leaves the report that its text speaks of.
source "$(dirname "$0")/setup.sh"
for experiment in one_device two_devices epochs communicators batch_size; do
  quietly "$samples/lectures/$experiment.sh" tiny "$experiment"
  grep -q '^Look at: ' said && grep -q "^Reports: $work/$experiment/report.html" said || fail "$experiment: $(cat said)"
  grep -q '<html' "$experiment/report.html" || fail "$experiment: no page"
  mv said "$experiment/said"
done
got=0
"$samples/lectures/epochs.sh" huge >/dev/null 2>said || got=$?
[ "$got" -eq 2 ] && grep -q '^usage: .*epochs.sh \[quick|full|tiny\] \[OUTPUT\]$' said || fail "status $got: $(cat said)"

python3 - <<'PY'
from glob import glob
import json
import os
import subprocess

def report(name):
    return json.load(open(f"{name}/report.json"))

def run(name, path):
    (found,) = [run for run in report(name)["runs"] if run["path"] == path]
    return found

def operations(run):
    return {row["operation"] for row in run["collectives"]}

def gradient(run):  # the largest allreduce
    return max(row["bytes"] for row in run["collectives"] if row["operation"] == "MPI_Allreduce")

(one,) = report("one_device")["runs"]
assert one["ranks"] == 1 and one["iterations"]["count"] == 2 * 64 // 4, one["iterations"]
assert one["config"]["model"] == "vgg_lecture width 0.125", one["config"]
assert "What shrinks when ranks are added" in open("one_device/said").read()

# At layer level: eight bytes a range, beside the header, names, counters and clocks of a process.
(trace,) = glob("one_device/**/*.pace", recursive=True)
info = json.loads(subprocess.run(["paceline", "info", "--format", "json", trace], capture_output=True, check=True).stdout)
ranges = info["traces"][0]["events"]["nvtx"]
assert ranges > 1000 and os.path.getsize(trace) <= 16384 + 8 * ranges, (ranges, os.path.getsize(trace))

two = report("two_devices")
assert [(r["ranks"], r["config"]["updater"]) for r in two["runs"]] == [(1, "allreduce"), (2, "main_rank"), (2, "allreduce")]
assert [p["ranks"] for p in two["scaling"]["points"] if p.get("speedup")] == [1, 2, 2], two["scaling"]["points"]
assert {"MPI_Reduce", "MPI_Bcast"} <= operations(run("two_devices", "2-main_rank"))
assert "MPI_Reduce" not in operations(run("two_devices", "2-allreduce"))

epochs = report("epochs")
assert [(r["ranks"], r["config"]["epochs"]) for r in epochs["runs"]] == [(1, 1), (2, 1), (1, 3), (2, 3)]
# On a busy machine a run of three such short epochs may take less time than a run of one; then there is no time model.
seconds = {(p["ranks"], p["epochs"]): p["seconds"] for p in epochs["scaling"]["points"]}
modelled = [ranks for ranks in (1, 2) if seconds[ranks, 3] > seconds[ranks, 1]]
assert [row["ranks"] for row in epochs["scaling"].get("time_model", [])] == modelled, epochs["scaling"]

communicators = report("communicators")
assert [r["config"]["communicator"] for r in communicators["runs"]] == ["mpi", "hierarchical"]
assert all(r["ranks"] == 4 for r in communicators["runs"])
assert "MPI_Reduce" in operations(run("communicators", "hierarchical"))
rows = [line.split() for line in open("communicators/allreduce.txt") if line.split()[0].isdigit()]
assert {row[2] for row in rows} >= {"mpi", "naive", "hierarchical", "ring"} and {row[-1] for row in rows} == {"0"}, rows

batches = report("batch_size")["runs"]
assert [r["config"]["batch_per_rank"] for r in batches] == [2, 8] and [r["iterations"]["count"] for r in batches] == [3, 3]
assert gradient(batches[0]) == gradient(batches[1]) > 1e5, batches
# The table of steps: run, ranks, hosts, batch, images/s, step, communication, share, hidden.
lines = {line.split()[0]: line.split() for line in open("batch_size/said") if line.startswith("  batch-")}
for r in batches:
    cells = lines[r["path"]]
    assert cells[1:4] == ["2", "1", str(r["config"]["batch_per_rank"])], cells
    speed, step, communication, share = (float(cells[i]) for i in (4, 5, 6, 7))
    # One statistic: each figure follows from the ones beside it, and the share is the report's.
    assert 0 < communication < step, cells
    assert abs(share - 100 * communication / step) < 0.2 + 10 / step, cells
    assert abs(share - 100 * r["communication_share_of_step"]) < 0.2, (cells, r["communication_share_of_step"])
    assert abs(speed * step / 1000 - r["config"]["images_per_iteration"]) < 0.01 * r["config"]["images_per_iteration"] + 0.1 * step / 1000, cells
PY
