# SPDX-License-Identifier: Apache-2.0
"""usage: check_kineto.py PACELINE FILE: compares what Paceline reads from PyTorch's trace with the JSON of the file."""
import collections
import decimal
import gzip
import json
import sys

from model import Comparison, export, sample, spans, summary

program, path = sys.argv[1], sample(sys.argv[2])
with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8", errors="replace") as file:
    events = json.load(file, parse_float=decimal.Decimal, strict=False)["traceEvents"]
rows = [row for row in export(program, path) if row["kind"] == "slice"]
check = Comparison()

# Their category, and the category or categories of the model. Slices of the domain nccl are made from kernels.
CATEGORIES = {"cpu_op": ["cpu_op"], "user_annotation": ["user_annotation"], "python_function": ["python_function"],
              "gpu_user_annotation": ["gpu_user_annotation"], "cuda_runtime": ["runtime", "synchronization"],
              "cuda_driver": ["driver"], "kernel": ["kernel"], "gpu_memcpy": ["memcpy"], "gpu_memset": ["memset"]}


def span(event):
    """Start and end in ns."""
    start = int(decimal.Decimal(event["ts"]) * 1000)
    return start, start + int(decimal.Decimal(event["dur"]) * 1000)


theirs = collections.defaultdict(list)
for event in events:
    if event.get("ph") == "X" and event.get("cat") in CATEGORIES:
        theirs[event["cat"]].append(event)
slices = collections.defaultdict(list)
for row in rows:
    if row["args"].get("domain") != "nccl":
        slices[row["category"]].append(row)
zero = min(span(event)[0] for of in theirs.values() for event in of)
first = min(row["start_ns"] for categories in CATEGORIES.values() for c in categories for row in slices[c])

for category, ours in CATEGORIES.items():
    own = [row for c in ours for row in slices[c]]
    check.equal(category, summary((start - first, end - first) for start, end in spans(own)),
                summary((start - zero, end - zero) for start, end in map(span, theirs[category])))
for category, field in (("kernel", "kernel"), ("gpu_memcpy", "memcpy")):
    check.equal(f"{category} by stream",
                collections.Counter(row["track"].rsplit(" ", 1)[-1] for row in slices[field]),
                collections.Counter(str(event["tid"]) for event in theirs[category]))
check.equal("correlations of kernels", sum(row["args"].get("correlation", 0) for row in slices["kernel"]),
            sum(event["args"].get("correlation", 0) for event in theirs["kernel"]))
check.equal("bytes of copies", sum(row["args"].get("bytes", 0) for row in slices["memcpy"]),
            sum(event["args"].get("bytes", 0) for event in theirs["gpu_memcpy"]))
check.equal("names of operators", collections.Counter(row["name"] for row in slices["cpu_op"]),
            collections.Counter(event["name"] for event in theirs["cpu_op"]))
check.end()
