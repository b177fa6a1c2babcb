#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: check_exports.py FORMAT FOLDER

Reads what write_exports wrote in FORMAT with a second implementation (json, protoc, sqlite3, otf2-print, pyarrow), and
compares every slice, mark and sample with the CSV export of the same run. Exit status: 0 equal; 1 different, with one
line for the first difference; 77 the second implementation is not installed."""
import ast
import csv
import json
import os
import re
import shutil
import subprocess
import sys
from decimal import Decimal

FORMAT, FOLDER = sys.argv[1:]
HERE = os.path.dirname(os.path.abspath(__file__))
csv.field_size_limit(1 << 30)
UTC_OF_ZERO = 1_700_000_000_123_456_789  # in ns
# The categories that PyTorch's profiler has for CUDA events.
KINETO = {"runtime": "cuda_runtime", "driver": "cuda_driver", "memcpy": "gpu_memcpy", "memset": "gpu_memset"}


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


def check(condition, *what):
    if not condition:
        print("different:", *what)
        sys.exit(1)


def equal(theirs, ours, what):
    """Compares two lists in any order."""
    theirs, ours = sorted(theirs, key=repr), sorted(ours, key=repr)
    for a, b in zip(theirs, ours):
        check(a == b, what, "\n ", repr(a)[:2000], "\n ", repr(b)[:2000])
    check(len(theirs) == len(ours), what, "has", len(theirs), "entries in place of", len(ours))


class Truth:
    """The CSV export."""

    def __init__(self, name):
        self.slices, self.marks, self.samples, self.ranks = [], [], [], {}
        with open(f"{FOLDER}/{name}.csv", encoding="utf-8", errors="replace", newline="") as file:
            for row in csv.DictReader(file):
                rank, start = int(row["rank"]), int(row["start_ns"])
                args = json.loads(row["args"]) if row["args"] else {}
                place = (rank, row["track"])
                if row["kind"] == "process":
                    self.ranks[rank] = row
                elif row["kind"] == "counter":
                    self.samples.append((*place, start, float(args["value"]), args["sum"]))
                elif row["kind"] == "slice":
                    self.slices.append((*place, row["name"], row["category"], args.pop("domain", ""), start,
                                        int(row["duration_ns"]), int(row["depth"]), args))
                else:
                    self.marks.append((*place, row["name"], row["category"], args.pop("domain", ""), start, args))


def rates(samples):
    """The samples of one track as these tools draw them: a sum as its rise per second."""
    if not samples[0][4]:
        return [(time, value) for _, _, time, value, _ in samples]
    made = []
    for (_, _, time, value, _), (_, _, later, higher, _) in zip(samples, samples[1:]):
        made.append((time, (higher - value) / (later - time) * 1e9))
    return made


def equal_curves(drawn, truth):
    """Compares {(rank, track): [(time, value)]} with the samples. A sum's last rate is that of the interval before."""
    tracks = {}
    for sample in truth.samples:
        tracks.setdefault(sample[:2], []).append(sample)
    check(drawn.keys() == tracks.keys(), "counters", drawn.keys(), tracks.keys())
    for place, samples in tracks.items():
        expected = rates(samples)
        check(0 <= len(drawn[place]) - len(expected) <= 1, place, len(drawn[place]), len(expected))
        for (time, value), (at, rate) in zip(drawn[place], expected):
            check(time == at and abs(value - rate) <= 1e-9 * abs(rate), place, time, at, value, rate)


def check_chrome(name):
    truth = Truth(name)
    with open(f"{FOLDER}/{name}.chrome", encoding="utf-8") as file:
        document = json.load(file, parse_float=Decimal)
    threads, slices, marks, counters, starts, ends = {}, [], [], {}, {}, {}
    for event in document["traceEvents"]:
        if event["ph"] == "M" and event["name"] == "thread_name":
            threads[event["pid"], event["tid"]] = event["args"]["name"]
    for event in document["traceEvents"]:
        if event["ph"] == "M":
            continue
        start = event["ts"] * 1000
        check(start == int(start), "not a whole number of ns:", start)
        place = (event["pid"], threads.get((event["pid"], event["tid"])))
        if event["ph"] in "sf":
            (starts if event["ph"] == "s" else ends)[event["id"]] = (*place, start)
        elif event["ph"] == "C":
            curve = counters.setdefault((event["pid"], event["name"]), [])
            curve.append((start, float(next(iter(event["args"].values())))))
        else:
            args = {key: float(value) if isinstance(value, Decimal) else value for key, value in event["args"].items()}
            if event["cat"] in ("kernel", "gpu_memcpy"):
                check((args.pop("device"), args.pop("stream")) == (0, 7), event)
            found = (*place, event["name"], event["cat"], args.pop("domain", ""), start)
            if event["ph"] == "X":
                slices.append((*found, event["dur"] * 1000, args))
            else:
                marks.append((*found, args))
    equal(slices, [(*row[:3], KINETO.get(row[3], row[3]) if row[4] == "cuda" else row[3] or row[4], *row[4:7], row[8])
                   for row in truth.slices], "slices")
    equal(marks, [(*row[:3], row[3] or row[4], *row[4:]) for row in truth.marks], "marks")
    equal_curves(counters, truth)
    launches = {row[0]: row for row in truth.slices if row[2] == "cudaLaunchKernel"}
    check(len(starts) == len(launches) and starts.keys() == ends.keys(), "flows", starts, ends)
    for flow, (rank, track, time) in starts.items():
        check((track, time) == (launches[rank][1], launches[rank][5]), "start of a flow", track, time)
        check(ends[flow] == (rank, "GPU 0 stream 7", 7000), "end of a flow", ends[flow])
    check(("distributedInfo" in document) == (name == "part"), "distributedInfo")
    check(document["baseTimeNanoseconds"] == UTC_OF_ZERO, "baseTimeNanoseconds")


def parse_text_format(text):
    """Protobuf's text format, as protoc prints it: {name: [values]}."""
    stack = [{}]
    for line in text.decode("ascii").split("\n"):
        line = line.strip()
        if line.endswith(" {"):
            check(not line[0].isdigit(), "a field that the .proto file does not have:", line)
            inner = {}
            stack[-1].setdefault(line[:-2], []).append(inner)
            stack.append(inner)
        elif line == "}":
            stack.pop()
        elif line:
            key, value = line.split(": ", 1)
            check(not key.isdigit(), "a field that the .proto file does not have:", line)
            if value[0] == '"':
                value = ast.literal_eval("b" + value).decode("utf-8")
            elif re.fullmatch(r"-?\d+", value):
                value = int(value)
            elif not value.startswith("TYPE_"):
                value = float(value)
            stack[-1].setdefault(key, []).append(value)
    return stack[0]


def perfetto_packets(name):
    if shutil.which("protoc") is None:
        skip("protoc is not installed (Debian's package protobuf-compiler)")
    with open(f"{FOLDER}/{name}.perfetto", "rb") as file:
        text = subprocess.run(["protoc", "--decode=perfetto.protos.Trace", f"-I{HERE}", f"{HERE}/perfetto.proto"],
                              stdin=file, stdout=subprocess.PIPE, check=True).stdout
    return parse_text_format(text)["packet"]


def check_perfetto_threads():
    """The states of threads and the samples of stacks of thread_run() in write_exports.cpp."""
    interned, threads, parents, states, samples, begun = {}, {}, {}, {}, {}, None
    for packet in perfetto_packets("threads"):
        for data in packet.get("interned_data", []):
            for kind, entries in data.items():
                interned.update({(kind, entry["iid"][0]): entry for entry in entries})
        for descriptor in packet.get("track_descriptor", []):
            uuid = descriptor["uuid"][0]
            if "thread" in descriptor:
                thread = descriptor["thread"][0]
                threads[thread["tid"][0]] = (thread["pid"][0] - 1, thread["thread_name"][0])
                parents[uuid] = thread["tid"][0]
            elif descriptor.get("name") == ["scheduler"]:
                parents[uuid] = parents[descriptor["parent_uuid"][0]]
        for event in packet.get("track_event", []):
            name = event.get("name_iid") and interned["event_names", event["name_iid"][0]]["name"][0]
            if event["type"] == ["TYPE_SLICE_BEGIN"] and name in ("running", "waiting", "blocked"):
                begun = (threads[parents[event["track_uuid"][0]]], name), packet["timestamp"][0]
            elif event["type"] == ["TYPE_SLICE_END"] and begun is not None:
                count, ns = states.get(begun[0], (0, 0))
                states[begun[0]] = (count + 1, ns + packet["timestamp"][0] - begun[1])
            if event["type"] == ["TYPE_SLICE_END"] or name == "work":
                begun = None
        for sample in packet.get("perf_sample", []):
            rank, thread = threads[sample["tid"][0]]
            check((rank + 1, thread) == (sample["pid"][0], "main thread"), sample)
            frames = []
            for frame in interned["callstacks", sample["callstack_iid"][0]]["frame_ids"] if "callstack_iid" in sample else []:
                frame = interned["frames", frame]
                mapping = interned["mappings", frame["mapping_id"][0]]
                file = interned["mapping_paths", mapping["path_string_ids"][0]]["str"][0]
                if "line_number" in frame:
                    check(interned["source_paths", frame["source_path_iid"][0]]["str"] == [file], frame)
                frames.append((interned["function_names", frame["function_name_id"][0]]["str"][0], file,
                               *frame.get("line_number", [])))
            key = (rank, *frames)
            samples.setdefault(key, []).append(packet["timestamp"][0])
    equal(states.items(), [(((rank, thread), state), (5, 5 * ns)) for rank in (0, 1) for thread in ("main thread", "loader")
                           for state, ns in (("running", 60), ("waiting", 10), ("blocked", 30))], "states")
    program = ("main", "train.py", 7)
    equal(samples.items(), [of for rank in (0, 1) for of in (
        ((rank,), [0]), ((rank, program, ("[read]", "/data/images")), list(range(45, 450, 45))),
        ((rank, program, ("step \ufffd", "model.py", 30 + rank)), [15 * i for i in range(30) if i % 3 != 0]))], "samples")


def check_perfetto(name):
    if name == "part":
        check_perfetto_threads()
    truth = Truth(name)
    packets = perfetto_packets(name)
    boottime, realtime = packets[0]["clock_snapshot"][0]["clocks"]
    check((boottime["clock_id"], realtime["clock_id"], realtime["timestamp"]) == ([6], [1], [UTC_OF_ZERO]), "clocks")
    zero = boottime["timestamp"][0]
    tracks, processes, words, events, flows = {}, {}, {}, [], {}
    for packet in packets:
        for interned in packet.get("interned_data", []):
            for kind, entries in interned.items():
                for entry in entries:
                    words[kind, entry["iid"][0]] = entry.get("name", entry.get("str", [""]))[0]
        for descriptor in packet.get("track_descriptor", []):
            uuid = descriptor["uuid"][0]
            if "process" in descriptor:
                process = descriptor["process"][0]
                processes[uuid] = int(re.match(r"rank (\d+) \(", process["process_name"][0])[1])
            else:
                label = descriptor["name"][0] if "name" in descriptor else descriptor["thread"][0]["thread_name"][0]
                tracks[uuid] = (processes[descriptor["parent_uuid"][0]], label)
        for event in packet.get("track_event", []):
            events.append((packet["timestamp"][0] - zero, event))
    events.sort(key=lambda of: of[0])
    slices, marks, counters, stacks = [], [], {}, {}
    for time, event in events:
        uuid = event["track_uuid"][0]
        stack = stacks.setdefault(uuid, [])
        kind = event["type"][0]
        if kind == "TYPE_SLICE_END":
            start, depth, *content = stack.pop()
            slices.append((*content[:-1], start, time - start, depth, content[-1]))
            continue
        if kind == "TYPE_COUNTER":
            counters.setdefault(tracks[uuid], []).append((time, event["double_counter_value"][0]))
            continue
        args = {}
        for note in event.get("debug_annotations", []):
            key = words["debug_annotation_names", note.pop("name_iid")[0]]
            (field, (value,)), = note.items()
            args[key] = words["debug_annotation_string_values", value] if field == "string_value_iid" else value
        categories = [words["event_categories", iid] for iid in event.get("category_iids", [])]
        content = (*tracks[uuid], words["event_names", event["name_iid"][0]], *(categories or [""]),
                   args.pop("domain", ""))
        for flow in event.get("flow_ids", []) + event.get("terminating_flow_ids", []):
            flows.setdefault(flow, []).append(content[2])
        if kind == "TYPE_SLICE_BEGIN":
            stack.append((time, len(stack), *content, args))
        else:
            marks.append((*content, time, args))
    check(not any(stacks.values()), "slices without an end")
    equal(slices, [(*row[:3], row[3] or row[4], *row[4:]) for row in truth.slices], "slices")
    equal(marks, [(*row[:3], row[3] or row[4], *row[4:]) for row in truth.marks], "marks")
    equal_curves(counters, truth)
    check(list(flows.values()) == [["cudaLaunchKernel", "void gemm<float, 2>(float*)"]] * len(truth.ranks), flows)


def check_arrow(name):
    try:
        import pyarrow.feather
    except ImportError:
        skip("pyarrow is not installed (PyPI)")
    truth = Truth(name)
    table = pyarrow.feather.read_table(f"{FOLDER}/{name}.arrow")
    table.validate(full=True)
    check(str(table.schema.field("name").type) == "dictionary<values=string, indices=int32, ordered=0>",
          table.schema.field("name").type)
    rows = table.to_pylist()
    found = {"slice": [], "mark": []}
    ids = set()
    for row in rows:
        ids.add(row["id"])
        check((row["id"] < 0) == (row["kind"] == "mark"), row)
        check(row["host"] == truth.ranks[row["rank"]]["host"] and row["pid"] == int(truth.ranks[row["rank"]]["pid"]), row)
        args = json.loads(row["args"])
        check(args.pop("domain", "") == row["domain"], row)
        content = (row["rank"], row["track"], row["name"], row["category"], row["domain"], row["start_ns"])
        if row["kind"] == "slice":
            found["slice"].append((*content, row["duration_ns"], row["depth"], args))
        else:
            found["mark"].append((*content, args))
    check(len(ids) == len(rows), "ids that are not unique")
    equal(found["slice"], truth.slices, "slices")
    equal(found["mark"], truth.marks, "marks")


def check_sqlite(name):
    import sqlite3
    truth = Truth(name)
    database = sqlite3.connect(f"{FOLDER}/{name}.sqlite")
    rows = lambda sql: database.execute(sql).fetchall()
    check(rows("PRAGMA integrity_check") == [("ok",)], "integrity")
    args = {}
    for of, key, value in rows("SELECT id, key, value FROM arguments"):
        # A number above 2^63 - 1 is a text, because SQLite has no such integers.
        args.setdefault(of, {})[key] = int(value) if key == "most" else value
    clipped = {of: {"clipped": edge} for of, edge in rows("SELECT id, clipped FROM slices WHERE clipped IS NOT NULL")}
    found = rows("SELECT s.id, s.rank, label, name, category, domain, start_ns, duration_ns, depth, end_ns, parent, self_ns "
                 "FROM slices s JOIN tracks USING (track) WHERE s.rank = tracks.rank")
    equal([(*row[1:9], {**args.get(row[0], {}), **clipped.get(row[0], {})}) for row in found], truth.slices, "slices")
    ends, own, children = {}, {}, {}
    for row in found:
        check(row[9] == row[6] + row[7], "end_ns", row)
        ends[row[0]], own[row[0]] = row[6:8], row[11]
        if row[10] is None:
            check(row[8] == 0, "parent", row)
        else:
            children[row[10]] = children.get(row[10], 0) + row[7]
    for of, (start, duration) in ends.items():
        check(own[of] == duration - children.get(of, 0), "self_ns", of)
    marks = rows("SELECT m.id, m.rank, label, name, category, domain, time_ns FROM marks m JOIN tracks USING (track)")
    equal([(*row[1:], args.get(row[0], {})) for row in marks], truth.marks, "marks")
    samples = rows("SELECT c.rank, label, time_ns, value FROM counters c JOIN tracks USING (track)")
    equal(samples, [row[:4] for row in truth.samples], "samples")
    equal(rows("SELECT rank, host, pid FROM ranks"),
          [(rank, row["host"], int(row["pid"])) for rank, row in truth.ranks.items()], "ranks")
    # Iterations and collectives are whole.
    whole = Truth("whole")
    iterations = [(row[0], row[8]["payload"], row[5], row[6]) for row in whole.slices
                  if row[2] == "iteration" and row[0] in truth.ranks]
    equal(rows("SELECT rank, number, start_ns, duration_ns FROM iterations"), iterations, "iterations")
    collectives = [(row[0], row[2], row[8]["bytes"], row[5]) for row in whole.slices
                   if row[2] == "MPI_Allreduce" and row[0] in truth.ranks]
    equal(rows("SELECT rank, operation, bytes, start_ns FROM collectives WHERE operation LIKE 'MPI%'"), collectives,
          "collectives")
    check(rows("SELECT count(*) FROM messages WHERE communicator = 'pair'") == [(1,)], "messages")


def check_otf2(name):
    if shutil.which("otf2-print") is None:
        skip("otf2-print is not installed (Debian's package otf2-tools)")
    truth = Truth(name)
    anchor = f"{FOLDER}/{name}.otf2/traces.otf2"
    run = lambda *command: subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode("utf-8")
    definitions = run("otf2-print", "-Werror", "-G", anchor)
    zero = 50  # the processes begin 50 ns before the run's zero
    locations = {}
    for number, label, group in re.findall(r'^LOCATION +(\d+) +Name: "(.*)" <\d+>,.*Group: "MPI Rank (\d+)" <\d+>',
                                           definitions, re.M):
        locations[int(number)] = (int(group), label)
    check({place for place in locations.values()} >= {row[:2] for row in truth.slices}, locations)
    regions = dict((int(number), text) for number, text in
                   re.findall(r'^REGION +(\d+) +Name: "((?:.|\n)*?)" <\d+>', definitions, re.M))
    text = run("otf2-print", "-Werror", anchor)
    enters = re.findall(r'^ENTER +(\d+) +(\d+) +Region: "(?:(?!^ENTER)(?:.|\n))*?" <(\d+)>$', text, re.M)
    leaves = re.findall(r'^LEAVE +(\d+) +(\d+) +Region: "(?:(?!^LEAVE)(?:.|\n))*?" <(\d+)>$', text, re.M)
    count = lambda rows, time: sorted((*row[:2], row[2], time(row)) for row in rows)
    events = lambda found: sorted((*locations[int(location)], regions[int(region)], int(time) - zero)
                                  for location, time, region in found)
    equal(events(enters), count(truth.slices, lambda row: row[5]), "enter events")
    equal(events(leaves), count(truth.slices, lambda row: row[5] + row[6]), "leave events")
    for key, value in (("bytes", "4096"), ("least", str(-2**63)), ("most", str(2**64 - 1))):
        check(bool(re.search(rf'\("{key}" <\d+>; U?INT64; {re.escape(value)}\)', text)) ==
              any(str(row[8].get(key)) == value for row in truth.slices), "attribute", key)
    samples = [(*locations[int(location)], int(time) - zero, float(value)) for location, time, value in
               re.findall(r'^METRIC +(\d+) +(\d+) +.*?Value:.*?; (-?[\d.e+-]+)\)?', text, re.M)]
    equal(samples, [(*row[:4],) for row in truth.samples], "samples")
    whole = name == "whole"
    for event, times in (("MPI_SEND", 1), ("MPI_RECV", 1), ("MPI_COLLECTIVE_BEGIN", 2), ("MPI_COLLECTIVE_END", 2)):
        found = len(re.findall(rf"^{event} ", text, re.M))
        check(found == (times if whole else 0), event, found)  # the part lacks a member
    if truth.marks:  # otf2-print does not print markers
        with open(f"{FOLDER}/{name}.otf2/traces.marker", "rb") as file:
            markers = file.read()
        for row in truth.marks:
            check(row[2].encode() in markers and row[4].encode() in markers, "marker", row)
    if shutil.which("otf2-snapshots"):
        subprocess.run(["otf2-snapshots", "-n", "2", anchor], stdout=subprocess.DEVNULL, check=True)



for run_name in ("whole", "part"):
    globals()[f"check_{FORMAT}"](run_name)
    print(f"{FORMAT}: the {run_name} run is equal")
