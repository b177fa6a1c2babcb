# SPDX-License-Identifier: Apache-2.0
"""What Paceline made of a trace, read back from its CSV export, and the comparison with counts made from the source."""
import csv
import json
import os
import subprocess
import sys
import tempfile

csv.field_size_limit(1 << 30)


def export(program, trace):
    """The rows of the CSV export, with numbers as numbers and the arguments as a dict."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.csv")
        subprocess.run([program, "export", "--to", "csv", "-o", path, trace], check=True)
        with open(path, newline="", encoding="utf-8", errors="replace") as file:
            rows = list(csv.DictReader(file))
    for row in rows:
        row["start_ns"], row["duration_ns"] = int(row["start_ns"]), int(row["duration_ns"])
        row["args"] = json.loads(row["args"]) if row["args"].startswith("{") else {}
    return rows


def summary(items):
    """Count, sum of durations, first start and last end of (start, end) pairs."""
    items = list(items)
    if not items:
        return {"count": 0}
    return {"count": len(items), "total_ns": sum(end - start for start, end in items),
            "first_ns": min(start for start, _ in items), "last_ns": max(end for _, end in items)}


def spans(rows):
    return [(row["start_ns"], row["start_ns"] + row["duration_ns"]) for row in rows]


class Comparison:
    def __init__(self):
        self.failures = 0

    def equal(self, what, ours, source):
        good = ours == source
        self.failures += not good
        print(f"{'ok  ' if good else 'FAIL'} {what}: {ours}" + ("" if good else f", but the source has {source}"))

    def end(self):
        sys.exit(1 if self.failures else 0)


def sample(path):
    """The path, or the end of the test with ctest's status for a skipped one."""
    if not os.path.exists(path):
        print(f"skipped: {path} is not there")
        sys.exit(77)
    return path
