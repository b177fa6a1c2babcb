#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges what `paceline report` says about generated jobs whose truth is known, from .pace files.

usage: judge_reports.py PACELINE [--runs 20] [--ranks 2,4,16] [--iterations 50,200] [--kind NAME] [--keep DIR]

The generator was written from docs/trace-format.md alone. It shares nothing with the code that it judges, and nothing
with the generators that the tests are tuned with. It prints, for each kind of job, how many of the judged reports
accuse anybody of anything: a slow rank or host, a slow link, an irregular rank, a change of the step time, or a verdict
that names somebody. The exit status is 1 if a sound kind is accused in more than 5 % and three standard errors, or if a
fault is found in less than 95 % and three standard errors. Needs libxxhash and libzstd.
"""
import argparse
import ctypes
import ctypes.util
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

xxhash = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
xxhash.XXH3_64bits_withSeed.restype = ctypes.c_uint64
xxhash.XXH3_64bits_withSeed.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]
zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
zstd.ZSTD_compress.restype = ctypes.c_size_t
zstd.ZSTD_compress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]

NAME, COMMUNICATOR, PUSH, POP, MPI_BEGIN_COLL, MPI_END, CLOCK_PAIR, SETTING, PROCESS_END = 1, 5, 16, 18, 34, 35, 48, 56, 63
ALLREDUCE = 203
MAIN_SLOTS = 2000  # of a block
# The columns of each type: (index into the event's words low, ext.high, ext.low; first bit; bits; whether it is a delta).
COLUMNS = {
    NAME: [(0, 0, 32, True), (0, 32, 32, False)],
    COMMUNICATOR: [(0, 0, 32, False), (0, 32, 32, False), (1, 0, 64, False), (2, 0, 32, False), (2, 32, 32, False)],
    PUSH: [(0, 0, 32, False), (0, 32, 16, False), (0, 48, 16, False)],
    POP: [(0, 0, 64, False)],
    MPI_BEGIN_COLL: [(0, 0, 16, False), (0, 16, 32, False), (0, 48, 16, False), (1, 0, 64, False), (2, 0, 32, False),
                     (2, 32, 32, True)],
    MPI_END: [(0, 0, 16, False), (0, 16, 48, False)],
    CLOCK_PAIR: [(0, 0, 64, True), (1, 0, 64, True), (2, 0, 64, False)],
    SETTING: [(0, 0, 32, False), (0, 32, 32, False)],
    PROCESS_END: [(0, 0, 64, False)],
}
MASK = 2**64 - 1


def hash_of(data, seed=0):
    return xxhash.XXH3_64bits_withSeed(data, len(data), seed)


def leb128(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def zigzag(difference):
    difference &= MASK
    return (difference << 1 ^ (MASK if difference >> 63 else 0)) & MASK


def column(data):
    return struct.pack("<I", len(data)) + data


def payload_of(events):
    """The columns of a block. An event is (type, ticks, words, text)."""
    out = [column(bytes(event[0] for event in events))]
    planes = [bytearray() for _ in range(8)]
    before = 0
    for _, ticks, _, _ in events:
        for place, byte in enumerate(leb128((ticks - before) % 2**56)):
            planes[place].append(byte)
        before = ticks
    out += [column(bytes(plane)) for plane in planes]
    for type_ in sorted({event[0] for event in events}):
        of_type = [event for event in events if event[0] == type_]
        for word, first, bits, is_delta in COLUMNS[type_]:
            values = [event[2][word] >> first & (2**bits - 1) for event in of_type]
            if is_delta:
                values = [zigzag(value - (values[i - 1] if i else 0)) for i, value in enumerate(values)]
            out.append(column(b"".join(map(leb128, values)) if any(values) else b""))
        if type_ == NAME:
            out.append(column(b"".join(event[3] for event in of_type)))
    return b"".join(out)


def block_of(events, sequence):
    raw = payload_of(events)
    room = ctypes.create_string_buffer(len(raw) + 4096)
    size = zstd.ZSTD_compress(room, len(room), raw, len(raw), 3)
    payload = room.raw[:size]
    slots = sum(1 + (len(text) + 15) // 16 if type_ == NAME else 2 if type_ in (COMMUNICATOR, MPI_BEGIN_COLL, CLOCK_PAIR)
                else 1 for type_, _, _, text in events)
    types = [event[0] for event in events]
    counts = [types.count(PUSH), types.count(MPI_BEGIN_COLL), 0, 0, 0, 0]
    counts[5] = len(types) - sum(counts)
    contents = (1 if NAME in types or COMMUNICATOR in types else 0) | (2 if PROCESS_END in types or SETTING in types else 0)
    contents |= 4 if CLOCK_PAIR in types else 0
    ticks = [event[1] for event in events]
    head = b"PBLK" + struct.pack("<IIIQQIIQQ6HI", 2, 0, slots, sequence, 4000, len(payload), len(raw), min(ticks), max(ticks),
                                 *counts, contents)
    return head + struct.pack("<Q", hash_of(payload, hash_of(head))) + payload


def write_trace(path, rank, ranks, host, utc_error_us, start_utc_ns, begins, ends, iteration_begins):
    """One rank's file: iterations with one backward range and one blocking allreduce each. Ticks are ns."""
    text = json.dumps({"host": host, "boot_id": "boot of " + host, "utc_error_us": utc_error_us, "command": ["train"],
                       "job": "judge", "start": 1000 + rank}).encode()
    header_bytes = 4096
    names = ["iteration", "backward", "MPI_COMM_WORLD"]
    events = [(NAME, 1, (i + 1 | len(name) << 32, 0, 0), name.encode()) for i, name in enumerate(names)]
    events.append((COMMUNICATOR, 1, (1 | ranks << 32, 77, rank | 3 << 32), b""))
    monotonic = 10**12

    def clock_pair(ticks):
        events.append((CLOCK_PAIR, ticks, (start_utc_ns + ticks, monotonic + ticks, 100), b""))

    clock_pair(1)
    for i, (begin, end, first) in enumerate(zip(begins, ends, iteration_begins)):
        events.append((PUSH, first, (1, 0, 0), b""))
        events.append((PUSH, first, (2, 0, 0), b""))
        events.append((POP, begin, (0, 0, 0), b""))
        events.append((MPI_BEGIN_COLL, begin, (ALLREDUCE | 0xFFFFFFFF << 16, 4096, 1 | i << 32), b""))
        events.append((MPI_END, end, (ALLREDUCE, 0, 0), b""))
        events.append((POP, end + 1000, (0, 0, 0), b""))
    last = ends[-1] + 2000
    clock_pair(last)
    events.append((PROCESS_END, last, (0, 0, 0), b""))
    blocks = b"".join(block_of(events[i:i + MAIN_SLOTS], i // MAIN_SLOTS + 1) for i in range(0, len(events), MAIN_SLOTS))
    fixed = b"PACELINE" + struct.pack("<IIQIIdQqqIIQ", 2, header_bytes, random.getrandbits(64), 2, 4000 + rank, 1e9, 10**9,
                                      start_utc_ns, start_utc_ns - 10**9, len(text), 0, hash_of(text))
    header = fixed + struct.pack("<QQQiiiI", hash_of(fixed), 0, header_bytes + len(blocks), rank, ranks, 0, 1)
    header += struct.pack("<7QQ", *[0] * 8) + text
    path.write_bytes(header.ljust(header_bytes, b"\0") + blocks)


class Noise:
    """One rank's noise of mean 0, in standard deviations (where the kind has one)."""

    def __init__(self, kind, iterations, draw):
        self.kind, self.draw, self.state = kind, draw, draw.gauss(0, 1)
        self.phase = draw.uniform(0, 2 * math.pi)
        self.period = draw.uniform(4, 8) if kind == "periodic" else draw.uniform(0.2, 0.4) * iterations
        self.burst = draw.random() < 1 / 11

    def next(self):
        draw, kind = self.draw, self.kind
        normal = draw.gauss(0, 1)
        if kind == "AR(1)":
            self.state = 0.6 * self.state + 0.8 * normal
            return self.state
        if kind in ("periodic", "slow period"):
            self.phase += 2 * math.pi / self.period
            return math.sin(self.phase) + normal * math.sqrt(0.5)
        if kind == "bursty":
            self.burst = draw.random() >= 0.2 if self.burst else draw.random() < 0.02
            return (normal + 4 * (self.burst - 1 / 11)) / 1.52
        if kind in ("t2", "t3"):
            degrees = int(kind[1])
            value = normal / math.sqrt(draw.gammavariate(degrees / 2, 2 / degrees))
            return max(-12.0, min(12.0, value)) / math.sqrt(3)  # symmetric, so the mean stays
        if kind == "Pareto":
            return 0.3 * (draw.paretovariate(1.5) - 3)
        if kind == "lognormal":
            return (math.exp(normal) - math.exp(0.5)) / 2.16
        if kind == "exponential":
            return draw.expovariate(1) - 1
        return normal


SOUND = ["equal", "normal", "AR(1)", "periodic", "slow period", "bursty", "t2", "t3", "Pareto", "lognormal", "exponential",
         "unequal", "host-shared", "round robin", "rotating", "mixed", "wrong clock"]
FAULTS = ["slow", "every third", "slow beside 5 x noise", "irregular", "slow host"]
MIXTURE = ["normal", "AR(1)", "bursty", "t3", "lognormal", "exponential"]


def work_of(kind, ranks, iterations, draw):
    """The work of each iteration and rank: about a step, with noise of a tenth of it."""
    own = [Noise(draw.choice(MIXTURE) if kind == "mixed" else kind, iterations, draw) for _ in range(ranks)]
    hosts = max(1, min(4, ranks // 2))
    turn, third = draw.randrange(ranks), draw.randrange(3)
    slow = ranks - 1
    # Late by eight standard errors of a mean of independent iterations, and by 3 % of a step at least.
    delay = max(8 / math.sqrt(0.9 * iterations) * math.sqrt(ranks / (ranks - 1)), 0.3)
    rows = []
    for i in range(iterations):
        shared = [draw.gauss(0, 1) for _ in range(hosts)]
        row = []
        for r in range(ranks):
            value = own[r].next()
            if kind == "equal":
                value *= 0.01
            if r == 0 and kind in ("unequal", "slow beside 5 x noise", "irregular"):
                value *= 5 if kind != "irregular" else 3 if draw.random() < 0.9 else 9
            if kind == "host-shared":
                value = (value + shared[r * hosts // ranks]) * math.sqrt(0.5)
            if kind in ("round robin", "rotating") and r == turn:
                value += 3
            if r == slow and (kind in ("slow", "slow beside 5 x noise") or kind == "every third" and i % 3 == third):
                value += delay * (3 if kind == "every third" else 1)
            if kind == "slow host" and r >= ranks // 2:
                value += 2 * delay
            row.append(max(1e5, 1e8 + 1e7 * value))
        turn = draw.randrange(ranks) if kind == "rotating" else (turn + 1) % ranks
        rows.append(row)
    return rows


def write_job(directory, kind, rows, draw):
    """The traces of a job with this work of each iteration and rank."""
    ranks = len(rows[0])
    begins, ends, firsts = [[[] for _ in range(ranks)] for _ in range(3)]
    free = [10_000_000] * ranks
    for row in rows:
        arrivals = [int(free[r] + row[r]) for r in range(ranks)]
        leave = max(arrivals) + 1_000_000
        for r in range(ranks):
            firsts[r].append(free[r])
            begins[r].append(arrivals[r])
            ends[r].append(leave + draw.randrange(5000))
            free[r] = ends[r][-1] + 2000
    spread = kind in ("wrong clock", "slow host")
    for r in range(ranks):
        host = f"node{r * 2 // ranks}" if spread else "node0"
        # The clock of node1 is 5 ms ahead, and its time service states 0.1 ms.
        utc = 1_700_000_000 * 10**9 + (5_000_000 if kind == "wrong clock" and host == "node1" else 0)
        write_trace(directory / f"r{r}.pace", r, ranks, host, 100, utc, begins[r], ends[r], firsts[r])


def accusations(report):
    run = report["runs"][0]
    lateness = run.get("lateness", {})
    found = [("slow rank", late["rank"], late) for late in lateness.get("slow_ranks", [])]
    found += [("slow host", late["host"], late) for late in lateness.get("slow_hosts", [])]
    found += [("irregular", late["rank"], late) for late in lateness.get("irregular_ranks", [])]
    for links in run.get("link_times", []):
        found += [("slow link", link["from"], link) for link in links.get("slow_links", [])]
    if "change" in run["iterations"]:
        found.append(("change", None, run["iterations"]["change"]))
    text = json.dumps([report.get("verdict"), report["findings"]])
    if not found and ("holds the others up" in text or "of the work on the critical path" in text):
        found.append(("sentence", None, None))
    return lateness.get("judged", False), found, lateness


def is_right(kind, ranks, found, lateness):
    slow = [what for what in found if what[0] == "slow rank" and what[1] == ranks - 1]
    if kind == "irregular":
        return any(what[0] == "irregular" and what[1] == 0 for what in found)
    if kind == "slow host":
        return any(what[0] == "slow host" and what[1] == "node1" for what in found)
    if kind == "every third":
        return any(late[2]["pattern"] == "periodic" and late[2]["period"] == 3 for late in slow)
    return bool(slow)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paceline")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--ranks", default="2,4,16")
    parser.add_argument("--iterations", default="50,200")
    parser.add_argument("--kind")
    parser.add_argument("--keep", help="keeps the last traces in this directory")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    good = True
    print(f"{'kind':22} runs  judged  accused or found   of what")
    for kind in [options.kind] if options.kind else SOUND + FAULTS:
        runs = judged = hit = clocks = 0
        kinds_of = {}
        for ranks in map(int, options.ranks.split(",")):
            for iterations in map(int, options.iterations.split(",")):
                if ranks < 4 and kind in ("irregular", "slow beside 5 x noise", "slow host"):
                    continue
                draw = random.Random(f"{options.seed} {kind} {ranks} {iterations}")
                random.seed(f"{options.seed} {kind} {ranks} {iterations}")
                for _ in range(options.runs):
                    with tempfile.TemporaryDirectory() as temporary:
                        directory = pathlib.Path(options.keep or temporary)
                        directory.mkdir(exist_ok=True)
                        for old in directory.glob("*.pace"):
                            old.unlink()
                        write_job(directory, kind, work_of(kind, ranks, iterations, draw), draw)
                        done = subprocess.run([options.paceline, "report", "--format", "json", str(directory)],
                                              capture_output=True, text=True, check=False)
                    if done.returncode != 0:
                        sys.exit(f"judge_reports.py: paceline report failed on {kind}: {done.stderr}")
                    runs += 1
                    is_judged, found, lateness = accusations(json.loads(done.stdout))
                    if not is_judged:
                        continue
                    judged += 1
                    clocks += "wrong_clocks" in lateness
                    if kind in FAULTS:
                        hit += is_right(kind, ranks, found, lateness)
                        continue
                    if kind in ("unequal", "mixed"):  # its irregularity is real
                        found = [what for what in found if what[0] != "irregular"]
                    hit += bool(found)
                    for what in {what[0] for what in found}:
                        kinds_of[what] = kinds_of.get(what, 0) + 1
        error = 3 * math.sqrt(0.05 * 0.95 / max(judged, 1))
        fine = hit >= (0.95 - error) * judged if kind in FAULTS else hit <= (0.05 + error) * judged
        good = good and fine
        note = f"{clocks} reports name the clock" if kind == "wrong clock" else kinds_of or ""
        print(f"{kind:22} {runs:4}  {judged:6}  {hit:4} ({100 * hit / max(judged, 1):5.1f} %)   {note}"
              f"{'' if fine else '   LIMIT BROKEN'}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
