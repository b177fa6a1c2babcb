#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile traces through paceline-view, by hand: each opens, or fails with one line on standard error.

usage: tests/bench/hostile_traces.py PACELINE_VIEW [--names N] [--nesting N] [--tracks N] [--keep DIRECTORY]
                                     [--files HOSTILE_FILES]

The traces are Kineto's JSON: zero, negative and huge times; N different names (10,000,000 in full); N ranges inside each
other; N threads. With --files build/release/tests/hostile_files, they are followed by the .pace files and OTF2 archives
that this program writes: the same, and damage. Prints the size of each trace, the time and the memory that its picture
took, and what happened. Ends with status 1 if a trace did neither.
"""
import argparse
import os
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
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen([view, "--screenshot", picture, trace], env=environment, stderr=errors)
        _, status, usage = os.wait4(child.pid, 0)  # unlike RUSAGE_CHILDREN, of this child alone
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        lines = errors.read().splitlines()
    seconds = time.monotonic() - begin
    memory = usage.ru_maxrss / 1000
    if child.returncode == 0 and os.path.getsize(picture) > 10_000:
        return "opens", not lines, seconds, memory
    return " / ".join(lines) or f"status {child.returncode}", child.returncode == 1 and len(lines) == 1, seconds, memory


def size_of(trace):
    """In MB; that of the whole archive if the trace is the anchor of one."""
    if not trace.endswith(".otf2"):
        return os.path.getsize(trace) / 1e6
    folder = os.path.dirname(trace)
    return sum(os.path.getsize(os.path.join(at, file)) for at, _, files in os.walk(folder) for file in files) / 1e6


def written_by(program, folder, options):
    """The name and the path of each trace that the program writes."""
    numbers = [str(number) for number in (options.names, options.nesting, options.tracks)]
    for path in subprocess.check_output([program, folder, *numbers], text=True).splitlines():
        yield os.path.relpath(path, folder), path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("view")
    parser.add_argument("--names", type=int, default=10_000_000)
    parser.add_argument("--nesting", type=int, default=10_000)
    parser.add_argument("--tracks", type=int, default=5_000)
    parser.add_argument("--files", metavar="HOSTILE_FILES", help="writes .pace files and OTF2 archives")
    parser.add_argument("--keep", metavar="DIRECTORY", help="where traces and pictures stay")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        os.makedirs(folder, exist_ok=True)

        def check(name, trace):
            picture = os.path.join(folder, name.replace("/", "-") + ".png")
            outcome, fine, seconds, memory = draw(options.view, trace, picture)
            size = size_of(trace)
            print(f"{name:25} {size:8.1f} MB  {seconds:6.1f} s  {memory:6.0f} MB of memory  {outcome}", flush=True)
            return not fine

        for name, events in traces(options):
            trace = os.path.join(folder, name + ".json")
            write(trace, events)
            failed += check(name, trace)
        if options.files:
            for name, trace in written_by(options.files, folder, options):
                failed += check(name, trace)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
