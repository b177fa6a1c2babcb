# SPDX-License-Identifier: Apache-2.0
"""usage: check_nvprof.py PACELINE DATABASE: compares what Paceline reads from a database of nvprof (or a zip file with
one) with its tables."""
import collections
import sqlite3
import sys
import tempfile
import zipfile

from model import Comparison, export, sample, spans, summary

program, path = sys.argv[1], sample(sys.argv[2])
folder = tempfile.TemporaryDirectory()
if zipfile.is_zipfile(path):
    with zipfile.ZipFile(path) as archive:
        path = archive.extract(archive.namelist()[0], folder.name)
database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
rows = export(program, path)
check = Comparison()


def of(table, columns, rest=""):
    return list(database.execute(f"SELECT {columns} FROM {table} {rest}")) if table in tables else []


prefix = "CUPTI_ACTIVITY_KIND_"
timed = ["CONCURRENT_KERNEL", "KERNEL", "MEMCPY", "MEMCPY2", "MEMSET", "RUNTIME", "DRIVER", "OVERHEAD"]
zero = min([start for table in timed for (start,) in of(prefix + table, "start")] +
           [start for (start,) in of(prefix + "MARKER", "timestamp")])


def shifted(pairs):
    return [(start - zero, end - zero) for start, end in pairs]


slices = [row for row in rows if row["kind"] == "slice"]
for category, sources in [("kernel", ["CONCURRENT_KERNEL", "KERNEL"]), ("memcpy", ["MEMCPY", "MEMCPY2"]),
                          ("memset", ["MEMSET"]), ("overhead", ["OVERHEAD"])]:
    source = [pair for table in sources for pair in of(prefix + table, "start, end")]
    ours = [row for row in slices if row["category"] == category]
    check.equal(category, summary(spans(ours)), summary(shifted(source)))
    if category in ("memcpy", "memset"):
        size = sum(size for table in sources for (size,) in of(prefix + table, "bytes"))
        check.equal("bytes of " + category, sum(row["args"]["bytes"] for row in ours), size)
kernels = collections.Counter(count for (count,) in of(
    prefix + "CONCURRENT_KERNEL", "COUNT(*)", "GROUP BY name"))
check.equal("calls of each kernel", collections.Counter(collections.Counter(
    row["name"] for row in slices if row["category"] == "kernel").values()), kernels)
calls = of(prefix + "RUNTIME", "start, end") + of(prefix + "DRIVER", "start, end")
ours = [row for row in slices if row["category"] in ("runtime", "driver", "synchronization")]
check.equal("CUDA calls", summary(spans(ours)), summary(shifted(calls)))
by_number = collections.Counter(count for table in ("RUNTIME", "DRIVER") for (count,) in of(
    prefix + table, "COUNT(*)", "GROUP BY cbid"))
check.equal("calls of each function", collections.Counter(collections.Counter(
    (row["category"] == "driver", row["name"]) for row in ours).values()), by_number)
starts = {number: time for number, time in of(prefix + "MARKER", "id, timestamp", "WHERE flags & 2")}
ends = {number: time for number, time in of(prefix + "MARKER", "id, timestamp", "WHERE flags & 4")}
ranges = shifted((time, ends[number]) for number, time in starts.items() if number in ends)
ours = [row for row in slices if row["category"] == ""]
check.equal("NVTX ranges", summary(spans(ours)), summary(ranges))
names = collections.Counter(name for (name,) in of(
    prefix + "MARKER", "value", "JOIN StringTable ON StringTable._id_ = name WHERE flags & 2"))
check.equal("names of ranges", collections.Counter(row["name"] for row in ours), names)
waits = {correlation for (correlation,) in of(prefix + "SYNCHRONIZATION", "correlationId",
                                              "WHERE streamId BETWEEN 0 AND 4294967294")}
source = sum(correlation in waits for table in ("RUNTIME", "DRIVER")
             for (correlation,) in of(prefix + table, "correlationId"))
check.equal("waits for a stream", sum("stream" in row["args"] for row in slices), source)
check.end()
