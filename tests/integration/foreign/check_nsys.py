# SPDX-License-Identifier: Apache-2.0
"""usage: check_nsys.py PACELINE EXPORT: compares what Paceline reads from an export of Nsight Systems with the tables."""
import collections
import json
import sqlite3
import subprocess
import sys

from model import Comparison, export, sample, spans, summary

program, path = sys.argv[1], sample(sys.argv[2])
database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
rows = export(program, path)
check = Comparison()


def of(table, columns, rest=""):
    return list(database.execute(f"SELECT {columns} FROM {table} {rest}")) if table in tables else []


# The times of threads on a CPU: from an event "in" to the next one "out" of the thread.
running, since = [], {}
for time, into, thread in of("SCHED_EVENTS", "start, isSchedIn, globalTid", "ORDER BY start"):
    if into:
        since[thread] = time
    elif thread in since:
        running.append((since.pop(thread), time))

# The run's zero is its first event.
mpi_tables = ("MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS")
timed = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
         "CUPTI_ACTIVITY_KIND_RUNTIME", "PROFILER_OVERHEAD", "OSRT_API", "COMPOSITE_EVENTS", *mpi_tables)
zero = min([start for table in timed for (start,) in of(table, "start")] +
           [start for (start,) in of("NVTX_EVENTS", "start", "WHERE eventType IN (34, 59, 60, 70, 71)")])


def shifted(rows):
    return [(row[0] - zero, row[1] - zero) for row in rows]


def plain(name):
    return name.split("_v")[0].split("_ptsz")[0]


slices = [row for row in rows if row["kind"] == "slice"]
for category, table in [("kernel", "CUPTI_ACTIVITY_KIND_KERNEL"), ("memcpy", "CUPTI_ACTIVITY_KIND_MEMCPY"),
                        ("memset", "CUPTI_ACTIVITY_KIND_MEMSET")]:
    ours = [row for row in slices if row["category"] == category]
    check.equal(category, summary(spans(ours)), summary(shifted(of(table, "start, end"))))
    if category == "memcpy":
        check.equal("bytes copied", sum(row["args"]["bytes"] for row in ours),
                    sum(size for (size,) in of(table, "bytes")))
names = collections.Counter(name for (name,) in of(
    "CUPTI_ACTIVITY_KIND_KERNEL", "value", "JOIN StringIds ON StringIds.id = demangledName"))
check.equal("kernels", collections.Counter(row["name"] for row in slices if row["category"] == "kernel"), names)

# A call with a call chain has two rows with one correlation; CUPTI's row (class 0 or 1) counts.
calls = of("CUPTI_ACTIVITY_KIND_RUNTIME", "start, end, eventClass, correlationId, value",
           "JOIN StringIds ON StringIds.id = nameId")
of_cupti = {correlation for _, _, event_class, correlation, _ in calls if event_class in (0, 1)}
kept = [call for call in calls if call[2] in (0, 1) or call[3] not in of_cupti]
ours = [row for row in slices if row["category"] in ("runtime", "driver", "synchronization")]
check.equal("CUDA calls", summary(spans(ours)), summary(shifted(kept)))
check.equal("CUDA functions", collections.Counter(row["name"] for row in ours),
            collections.Counter(plain(call[4]) for call in kept))

domains = {(tid >> 24, domain): text for tid, domain, text in of(
    "NVTX_EVENTS", "globalTid, domainId, COALESCE(text, (SELECT value FROM StringIds WHERE id = textId))",
    "WHERE eventType = 75")}
ranges = of("NVTX_EVENTS", "start, end, globalTid, domainId, COALESCE(text, (SELECT value FROM StringIds WHERE id = "
            "textId))", "WHERE eventType IN (59, 60, 70, 71) AND end IS NOT NULL")
mpi = [row for row in ranges if domains.get((row[2] >> 24, row[3])) == "MPI"]
for table in mpi_tables:
    mpi += set(of(table, "start, end, globalTid, 0, value", "JOIN StringIds ON StringIds.id = textId"))
user = [row for row in ranges if domains.get((row[2] >> 24, row[3])) != "MPI"]
ours = [row for row in slices if row["name"].startswith("MPI_")]
check.equal("MPI calls", summary(spans(ours)), summary(shifted(mpi)))
check.equal("MPI functions", collections.Counter(row["name"] for row in ours),
            collections.Counter(row[4] for row in mpi))
others = {"kernel", "memcpy", "memset", "graph", "runtime", "driver", "synchronization", "overhead", "call", "state"}
ours = [row for row in slices if not row["name"].startswith("MPI_") and row["category"] not in others]
check.equal("NVTX ranges", summary(spans(ours)), summary(shifted(user)))
ours = [row for row in slices if row["category"] == "overhead"]
check.equal("overhead of the profiler", summary(spans(ours)), summary(shifted(of("PROFILER_OVERHEAD", "start, end"))))
ours = [row for row in slices if row["category"] == "call"]
check.equal("system calls", summary(spans(ours)), summary(shifted(of("OSRT_API", "start, end"))))
states = json.loads(subprocess.run(
    [program, "query", "--format", "json", path,
     "SELECT start_ns, duration_ns FROM thread_states WHERE state = 'running'"],
    check=True, capture_output=True, text=True).stdout)
check.equal("times on a CPU", summary(spans(states)), summary(shifted(span for span in running if span[0] < span[1])))
samples = subprocess.run([program, "query", path, "SELECT count(*) AS n FROM samples", "--format", "json"],
                         check=True, capture_output=True, text=True).stdout
check.equal("samples", json.loads(samples)[0]["n"], len(of("COMPOSITE_EVENTS", "id")))
check.end()
