# SPDX-License-Identifier: Apache-2.0
"""usage: phases_from_csv.py EXPORT.csv REPORT.json

Computes the phases of each rank of a run of paceline-train from `paceline export --to csv` alone, as docs/metrics.md
defines them, and compares them with `paceline report --format json` to the nanosecond."""
import csv
import json
import sys

OWN = ["startup", "preprocess", "forward", "backward", "optimizer", "evaluate", "checkpoint"]
HOLDERS = {"startup", "evaluate", "checkpoint"}
COMPUTE = {"preprocess", "forward", "backward", "optimizer"}


def phase_of(row):
    category, domain = row["category"], json.loads(row["args"] or "{}").get("domain", "")
    if domain == "mpi":
        if row["name"].startswith("MPI_Init"):
            return "startup"
        if row["name"] == "MPI_Finalize":
            return "other"
        return "communication" if category in ("collective", "point-to-point", "wait", "one-sided") else None
    return "communication" if category == "allreduce" else category if category in OWN else None


def phases_of(rows):
    process = next(row for row in rows if row["kind"] == "process")
    start, end = process["start_ns"], process["start_ns"] + process["duration_ns"]
    main = json.loads(process["args"])["main"]
    gaps = [(row["start_ns"], row["start_ns"] + row["duration_ns"]) for row in rows if row["kind"] == "gap"]
    slices = [row for row in rows if row["kind"] == "slice" and row["track"] == main]  # by start, outer ones first
    startup_end = next((row["start_ns"] for row in slices if row["category"] == "iteration"), None)
    if startup_end is None:
        inits = [row["start_ns"] + row["duration_ns"] for row in slices if row["name"].startswith("MPI_Init")]
        startup_end = (inits or [row["start_ns"] for row in slices] or [start])[0]
    losses = [row["start_ns"] for row in rows if row["kind"] == "gap" and row["category"] == "lost"]
    startup_end = min([startup_end] + losses)
    totals = {}

    def give(begin, until, phase):
        begin, until = max(begin, start), min(until, end)
        if phase is None:
            give(begin, min(until, startup_end), "startup")
            give(max(begin, startup_end), until, "other")
        elif until > begin:
            missing = sum(max(0, min(until, off[1]) - max(begin, off[0])) for off in gaps)
            totals[phase] = totals.get(phase, 0) + until - begin - missing

    open_slices, cursor = [], start  # (end, phase, holder)
    for row in slices + [{"start_ns": end, "duration_ns": 0, "category": "", "name": "", "args": ""}]:
        while open_slices and open_slices[-1][0] <= row["start_ns"]:
            give(cursor, open_slices[-1][0], open_slices[-1][1])
            cursor = max(cursor, open_slices.pop()[0])
        around = open_slices[-1] if open_slices else (None, None, None)
        give(cursor, row["start_ns"], around[1])
        cursor = max(cursor, row["start_ns"])
        phase = phase_of(row) or around[1]
        if around[2] and phase in COMPUTE:
            phase = around[2]
        open_slices.append((row["start_ns"] + row["duration_ns"], phase, phase if phase in HOLDERS else around[2]))
    return {phase: ns for phase, ns in totals.items() if ns > 0}


def main():
    by_rank = {}
    with open(sys.argv[1], newline="") as file:
        for row in csv.DictReader(file):
            row["start_ns"], row["duration_ns"] = int(row["start_ns"]), int(row["duration_ns"])
            by_rank.setdefault(int(row["rank"]), []).append(row)
    with open(sys.argv[2]) as file:
        report = json.load(file)["runs"][0]["per_rank"]
    assert [rank["rank"] for rank in report] == sorted(by_rank), report
    for rank in report:
        computed = phases_of(by_rank[rank["rank"]])
        reported = {phase: ns for phase, ns in rank["phases"].items() if ns > 0}
        assert computed == reported, (rank["rank"], computed, reported)
        assert sum(computed.values()) == rank["wall_ns"], rank


main()
