#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: quickstart.sh DIRECTORY-OF-PROGRAMS
# The quickstart at a small size, without its installing and building: what it trains learns, its report accounts for the
# time, its traces are small.
source "$(dirname "$0")/setup.sh"
unset DISPLAY WAYLAND_DISPLAY
IMAGES=512 EPOCHS=8 BATCH=16 OPTIONS="--width 0.25" quietly "$samples/quickstart.sh" out
grep -q "^Report: .*out/report.html$" said && grep -q '<html' out/report.html || fail "no page: $(cat said)"
grep -q "^Viewer:  no display here; its picture is .*out/viewer.png$" said || fail "no picture: $(cat said)"
[ "$(head -c 4 out/viewer.png)" = $'\x89PNG' ] || fail "viewer.png is no picture"
paceline report --format json out/ranks-1 out/ranks-2 >report.json
paceline info --format json out/ranks-1 out/ranks-2 >info.json
for run in out/ranks-1 out/ranks-2; do
  paceline query --format csv "$run" "SELECT rank, count(*) FROM thread_states GROUP BY rank" | sed 1d
done >states.csv

python3 - <<'PY'
import json
import os

report = json.load(open("report.json"))
runs = report["runs"]
assert [run["ranks"] for run in runs] == [1, 2], runs
for run in runs:
    # Ten classes: chance is 0.1.
    assert run["accuracy"] >= 0.5, (run["path"], run["accuracy"])
    wall = sum(rank["wall_ns"] for rank in run["per_rank"])
    other = sum(rank["phases"]["other"] for rank in run["per_rank"])
    print(f"{run['ranks']} ranks: accuracy {run['accuracy']:.3f}, other {other / wall:.2%} of the time")
    # MPI_Finalize alone takes 45 ms of each rank.
    assert other <= 0.02 * wall, (run["path"], other, wall)
    assert run["iterations"]["count"] == 8 * 512 // (16 * run["ranks"]), run["iterations"]
    assert "dropped" not in run, run["dropped"]

# On disk a range takes 8 bytes, an MPI call 40, a state of a thread 4, beside the header, names, counters and clocks of
# a process.
traces = json.load(open("info.json"))["traces"]
assert len(traces) == 3, traces
states_of = [int(line.split(",")[1]) for line in open("states.csv")]
for trace, states in zip(traces, states_of, strict=True):
    events = trace["events"]
    budget = 16384 + 8 * events["nvtx"] + 40 * events["mpi"] + 4 * states
    size = os.path.getsize(trace["path"])
    print(f"{size} bytes for {events['nvtx']} ranges' events and {events['mpi']} MPI calls")
    assert size <= budget, (trace["path"], size, events)
PY
