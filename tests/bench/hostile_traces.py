#!/usr/bin/env python3
"""Hostile traces through paceline-view, by hand: each opens, or fails with one line on standard error.

usage: tests/bench/hostile_traces.py PACELINE_VIEW [--names N] [--nesting N] [--tracks N] [--keep DIRECTORY]

The traces are Kineto's JSON: zero, negative and huge times; N different names (10,000,000 in full); N ranges inside each
other; N threads. Prints the size of each trace, the time and the memory that its picture took, and what happened. Ends
with status 1 if a trace did neither.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time


def event(name, start_us, length_us, thread=1):
    return f'{{"ph":"X","cat":"cpu_op","name":"{name}","pid":1,"tid":{thread},"ts":{start_us},"dur":{length_us}}}'


def write(path, events):
    with open(path, "w") as file:
        file.write('{"schemaVersion":1,"distributedInfo":{"rank":0,"world_size":1},"traceEvents":[\n')
        for number, text in enumerate(events):
            file.write((",\n" if number else "") + text)
        file.write("\n]}\n")


def traces(options):
    yield "zero", (event("nothing", 7, 0) for _ in range(1000))
    yield "negative", (event("backwards", 1000 - i, -i) for i in range(1000))
    yield "huge", (event("huge", i, 1e13) for i in range(10))
    yield "too-huge", (event("too huge", i, 1e300) for i in range(10))
    yield "far-apart", (event("far", start, 1) for start in (-9e12, 0, 9e12))
    yield "nesting", (event("level", i, 2 * (options.nesting - i)) for i in range(options.nesting))
    yield "tracks", (event("work", i, 10, thread) for thread in range(options.tracks) for i in (0, 100))
    yield "names", (event(f"name {i:x}", i, 0.9) for i in range(options.names))


def draw(view, trace, picture):
    """The outcome in words, whether it is as it should be, seconds, and the child's largest memory in MB."""
    begin = time.monotonic()
    environment = dict(os.environ, QT_QPA_PLATFORM="offscreen")
    child = subprocess.run([view, "--screenshot", picture, trace], env=environment, capture_output=True, text=True)
    seconds = time.monotonic() - begin
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
    lines = child.stderr.splitlines()
    if child.returncode == 0 and os.path.getsize(picture) > 10_000:
        return "opens", not lines, seconds, memory
    return " / ".join(lines) or f"status {child.returncode}", child.returncode == 1 and len(lines) == 1, seconds, memory


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("view")
    parser.add_argument("--names", type=int, default=10_000_000)
    parser.add_argument("--nesting", type=int, default=10_000)
    parser.add_argument("--tracks", type=int, default=5_000)
    parser.add_argument("--keep", metavar="DIRECTORY", help="where traces and pictures stay")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        os.makedirs(folder, exist_ok=True)
        for name, events in traces(options):
            trace = os.path.join(folder, name + ".json")
            write(trace, events)
            outcome, fine, seconds, memory = draw(options.view, trace, os.path.join(folder, name + ".png"))
            failed += not fine
            size = os.path.getsize(trace) / 1e6
            print(f"{name:10} {size:8.1f} MB  {seconds:6.1f} s  at most {memory:6.0f} MB so far  {outcome}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
