#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts the CUDA records of real traces through the recorder, and compares what comes out with what went in.

Each process of an export of Nsight Systems or of a trace of PyTorch's profiler becomes a recorded process, in which
stand-ins of the CUDA driver and of CUPTI take the place of the real ones (stand_in_driver.c, stand_in_cupti.c): no GPU
takes part, but the records are a GPU's. The figures of the recorded run must be those of the trace, read by sqlite3 and
json here and by Paceline's own reader: every kernel, copy and memset with its duration, grid and bytes, every call that
the recorder does not leave out, and the join of calls and kernels.

usage: replay.py PACELINE REPLAY_HOST STAND_INS CUPTI_INCLUDE TRACES        status 77: skipped, TRACES is not there
"""
import gzip
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile

PACELINE, HOST, STAND_INS, INCLUDE, TRACES = sys.argv[1:]
EDGE_NS = 2  # an edge's ns are converted to the recorder's ticks and back

failures = []


def check(holds, *what):
    if not holds:
        failures.append(what)


def call_numbers(api):
    """CUPTI's numbers of the calls of an API, by name with version, such as cudaLaunchKernel_v7000."""
    header = (pathlib.Path(INCLUDE) / f"cupti_{api}_cbid.h").read_text()
    return {name: int(number) for name, number in re.findall(rf"{api.upper()}_TRACE_CBID_(\w+?)\s*=\s*(\d+)", header)}


def columns(database, table):
    return {row[1] for row in database.execute(f"PRAGMA table_info({table})")}


class Records:
    """The records of a process as lines for replay_host, and what is expected of them, by correlation."""

    def __init__(self):
        self.lines, self.expected = [], {"kernel": {}, "memcpy": {}, "memset": {}, "call": {}}

    def add(self, letter, start, end, *words):
        self.lines.append((start, end, letter, " ".join(str(word) for word in words)))

    def text(self):
        """In the order of their ends, with times since the first begin."""
        zero = min(start for start, *_ in self.lines)
        return "".join(f"{letter} {start - zero} {end - zero} {words}\n"
                       for start, end, letter, words in sorted(self.lines, key=lambda line: line[1]))


def records_of_kineto(trace):
    """A trace of PyTorch's profiler, whose times are µs. Its copies name the kinds of memory."""
    kinds, memory = {"HtoD": 1, "DtoH": 2, "DtoD": 8}, {"Pageable": 1, "Pinned": 2, "Device": 3}
    of = Records()
    for event in trace["traceEvents"]:
        category, arguments = event.get("cat"), event.get("args", {})
        if category not in ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime"):
            continue
        start, end = round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)
        correlation = arguments["correlation"]
        stream = (arguments.get("context", 1), arguments.get("stream"), correlation, 0)
        if category == "kernel":
            shape = [*arguments["grid"], *arguments["block"], arguments["registers per thread"], 0, arguments["shared memory"]]
            of.add("K", start, end, *stream, *shape, event["name"])
            of.expected["kernel"][correlation] = (end - start, shape)
        elif category == "gpu_memcpy":
            kind, source, target = re.match(r"Memcpy (\w+) \((\w+) -> (\w+)\)", event["name"]).groups()
            of.add("C", start, end, *stream, kinds[kind], memory[source], memory[target], arguments["bytes"])
            of.expected["memcpy"][correlation] = (end - start, arguments["bytes"])
        elif category == "gpu_memset":
            of.add("S", start, end, *stream, 0, 3, arguments["bytes"])
            of.expected["memset"][correlation] = (end - start, arguments["bytes"])
        else:
            of.add("R", start, end, arguments["cbid"], correlation, 0, event["name"])
            of.expected["call"].setdefault(correlation, []).append((end - start, event["name"]))
    return of


def records_of_nsys(database, process):
    """A process (its globalPid) of an export of Nsight Systems."""
    numbers = {0: call_numbers("runtime"), 1: call_numbers("driver")}
    strings = dict(database.execute("SELECT id, value FROM StringIds"))
    of = Records()
    add, expected = of.add, of.expected

    def graph(table):
        return "ifnull(graphId, 0)" if "graphId" in columns(database, table) else "0"

    table = "CUPTI_ACTIVITY_KIND_KERNEL"
    for row in database.execute(
            f"SELECT start, end, correlationId, contextId, streamId, {graph(table)}, gridX, gridY, gridZ, blockX, blockY, blockZ,"
            f" registersPerThread, staticSharedMemory, dynamicSharedMemory, ifnull(mangledName, demangledName) FROM {table}"
            " WHERE globalPid = ?", (process,)):
        start, end, correlation, context, stream, of_graph, *shape, name = row
        add("K", start, end, context, stream, correlation, of_graph, *shape, strings[name])
        expected["kernel"][correlation] = (end - start, shape)
    table = "CUPTI_ACTIVITY_KIND_MEMCPY"
    for start, end, correlation, context, stream, kind, source, target, size in database.execute(
            "SELECT start, end, correlationId, contextId, streamId, copyKind, srcKind, dstKind, bytes"
            f" FROM {table} WHERE globalPid = ?", (process,)):
        # CUPTI's kinds of memory begin with one for "unknown", Nsight Systems' do not.
        add("C", start, end, context, stream, correlation, 0, kind, source + 1, target + 1, size)
        expected["memcpy"][correlation] = (end - start, size)
    table = "CUPTI_ACTIVITY_KIND_MEMSET"
    for start, end, correlation, context, stream, value, kind, size in database.execute(
            f"SELECT start, end, correlationId, contextId, streamId, value, memKind, bytes FROM {table} WHERE globalPid = ?",
            (process,)):
        add("S", start, end, context, stream, correlation, 0, value, kind + 1, size)
        expected["memset"][correlation] = (end - start, size)
    for start, end, api, correlation, name, result in database.execute(
            "SELECT start, end, eventClass, correlationId, nameId, returnValue FROM CUPTI_ACTIVITY_KIND_RUNTIME"
            " WHERE globalTid >> 24 = ? >> 24", (process,)):
        number = numbers.get(api, {}).get(strings[name])
        if number is None:
            continue  # no call, or one that these headers do not have
        add("D" if api else "R", start, end, number, correlation, result, strings[name])
        expected["call"].setdefault(correlation, []).append((end - start, strings[name].rsplit("_v", 1)[0]))
    return of


def query(run, sql):
    text = subprocess.run([PACELINE, "query", "--format", "json", run, sql], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=True).stdout
    return json.loads(text)


def gpu_figures(run):
    text = subprocess.run([PACELINE, "report", "--format", "json", run], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=True).stdout
    return [rank["gpu"] for rank in json.loads(text)["runs"][0]["per_rank"]]


def compare_rank(run, rank, expected):
    slices = query(run, f"""SELECT category, name, duration_ns AS ns, correlation.value AS number, bytes.value AS bytes, grid.value AS grid
        FROM slices JOIN arguments AS correlation ON correlation.id = slices.id AND correlation.key = 'correlation'
        LEFT JOIN arguments AS bytes ON bytes.id = slices.id AND bytes.key = 'bytes'
        LEFT JOIN arguments AS grid ON grid.id = slices.id AND grid.key = 'grid'
        WHERE rank = {rank} AND domain = 'cuda'""")
    found = {kind: {} for kind in expected}
    for row in slices:
        if row["category"] in ("kernel", "memcpy", "memset"):
            found[row["category"]][row["number"]] = row
        elif row["category"] in ("runtime", "driver", "synchronization"):
            found["call"].setdefault(row["number"], []).append(row)
    for kind in ("kernel", "memcpy", "memset"):
        check(found[kind].keys() == expected[kind].keys(), run, rank, kind, len(found[kind]), "of", len(expected[kind]))
        for number in found[kind].keys() & expected[kind].keys():
            ns, what = expected[kind][number]
            check(abs(found[kind][number]["ns"] - ns) <= 2 * EDGE_NS, run, rank, kind, number, found[kind][number]["ns"], ns)
            if kind == "kernel":
                grid = "×".join(str(size) for size in what[:3])
                check(found[kind][number]["grid"] == grid, run, rank, number, found[kind][number]["grid"], grid)
            else:
                check(found[kind][number]["bytes"] == what, run, rank, kind, number, "bytes", found[kind][number]["bytes"], what)
    # Calls that only ask are left out (quiet_calls.h); every other one is there, once.
    kept = {row["name"] for rows in found["call"].values() for row in rows}
    check({"cudaLaunchKernel", "cudaMemcpyAsync"} & kept or {"cudaMemcpy"} & kept, run, rank, "calls that must be kept", kept)
    for number, calls in expected["call"].items():
        wanted = sorted(name for _, name in calls if name in kept)
        had = found["call"].get(number, [])
        check(sorted(row["name"] for row in had) == wanted, run, rank, "call", number, [row["name"] for row in had], wanted)
        for ns, name in calls:
            times = [row["ns"] for row in had if row["name"] == name]
            check(name not in kept or any(abs(time - ns) <= 2 * EDGE_NS for time in times), run, rank, name, number, ns, times)


def replay(source, work):
    """Records the processes of a trace, and compares. Returns what was compared."""
    if source.suffix == ".sqlite":
        database = sqlite3.connect(f"file:{source}?mode=ro", uri=True)
        processes = [records_of_nsys(database, row[0]) for row in database.execute(
            "SELECT DISTINCT globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY globalPid")]
    else:
        processes = [records_of_kineto(json.loads(gzip.decompress(source.read_bytes())))]
    run = work / source.stem
    running = []
    for rank, process in enumerate(processes):
        records = work / f"{source.stem}-{rank}.records"
        records.write_text(process.text())
        environment = dict(os.environ, LD_LIBRARY_PATH=STAND_INS, STAND_IN="works", PACELINE_JOB=source.stem, RANK=str(rank),
                           WORLD_SIZE=str(len(processes)), LOCAL_RANK=str(rank))
        running.append(subprocess.Popen([PACELINE, "record", "-o", run, "--", HOST, records], env=environment,
                                        stderr=subprocess.PIPE, text=True))
    for process in running:
        said = process.communicate()[1]
        check(process.returncode == 0 and said == "", source.name, "recorder", process.returncode, said)
    for rank, process in enumerate(processes):
        compare_rank(run, rank, process.expected)
    # Both readers lead to the same figures of each GPU.
    for rank, (mine, theirs) in enumerate(zip(gpu_figures(run), gpu_figures(source))):
        for name in ("compute_ns", "noncompute_ns"):
            check(abs(mine[name] - theirs[name]) <= 1e-4 * theirs[name] + 100, source.name, rank, name, mine[name], theirs[name])
        counts = [sorted(kernel["count"] for kernel in of["kernels"]) for of in (mine, theirs)]
        check(sum(counts[0]) == sum(counts[1]), source.name, rank, "kernels", counts)
    return {kind: sum(len(of.expected[kind]) for of in processes) for kind in processes[0].expected}


def main():
    sources = [*sorted(pathlib.Path(TRACES).glob("nsys/*.sqlite")), *sorted(pathlib.Path(TRACES).glob("kineto/*.json.gz"))]
    if not sources:
        print(f"replay.py: skipped: no trace in {TRACES}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        for source in sources:
            # A reading of the clocks may be some ns off by chance. What is wrong in the conversion is wrong each time.
            for attempt in range(3):
                failures.clear()
                work = pathlib.Path(folder) / str(attempt)
                work.mkdir(exist_ok=True)
                print(source.name, replay(source, work))
                if not failures:
                    break
            if failures:
                break
    for failure in failures[:20]:
        print("failed:", *failure, file=sys.stderr)
    return 1 if failures else 0


sys.exit(main())
