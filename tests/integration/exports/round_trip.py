#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: round_trip.py FORMAT FOLDER PROGRAM

Reads what write_exports wrote in FORMAT with `paceline`, and compares every slice with the CSV export of the same run:
track, name, start, duration and depth, and but for OTF2 the arguments. Exit status: 0 equal; 1 different, with one line
for the first difference; 77 this version has no reader for the format."""
import csv
import io
import json
import subprocess
import sys

FORMAT, FOLDER, PROGRAM = sys.argv[1:]
# A Chrome file of one rank names it. OTF2 numbers the ranks from 0, and has arguments of calls of MPI only.
TRUTH = "part" if FORMAT == "chrome" else "whole"
FILE = f"{FOLDER}/{TRUTH}.{FORMAT}"
csv.field_size_limit(1 << 30)


def slices(lines):
    found = []
    for row in csv.DictReader(lines):
        if row["kind"] != "slice":
            continue
        args = json.loads(row["args"])
        for key in ("domain", "device", "stream"):
            args.pop(key, None)
        found.append([int(row["rank"]), row["name"], int(row["start_ns"]), int(row["duration_ns"]), int(row["depth"]), args])
    ranks = sorted({of[0] for of in found})
    first = min(of[2] for of in found)
    for of in found:
        if FORMAT != "chrome":  # other zeros of the time
            of[2] -= first
        if FORMAT == "otf2":
            of[0], of[5] = ranks.index(of[0]), {}
        of[5] = sorted(of[5].items())
    return sorted(found)


read = subprocess.run([PROGRAM, "export", "--to", "csv", FILE], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
if read.returncode == 1 and (b"not a trace file" in read.stderr or b"no traces in" in read.stderr):
    print(f"there is no reader for {FORMAT}")
    sys.exit(77)
if read.returncode != 0:
    sys.exit(read.stderr.decode(errors="replace"))
theirs = slices(io.StringIO(read.stdout.decode("utf-8"), newline=""))
with open(f"{FOLDER}/{TRUTH}.csv", encoding="utf-8", errors="replace", newline="") as file:
    ours = slices(file)
for a, b in zip(theirs, ours):
    if a != b:
        sys.exit(f"different:\n  {a!r:.1000}\n  {b!r:.1000}")
if len(theirs) != len(ours):
    sys.exit(f"{len(theirs)} slices in place of {len(ours)}")
print(f"{len(ours)} slices are equal")
