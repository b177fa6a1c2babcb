#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: stack_samples.py PACELINE [SECONDS]

What samples of Python stacks cost: a function at depth 30 computes or sleeps. Prints for each rate the samples in a second,
the CPU time of a sample (of the recorder's thread, by the system's schedstat) and the bytes in a second of the file beyond
those without samples.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = """
import ctypes, glob, sys, time

def descend(levels, function):
    return descend(levels - 1, function) if levels else function()

def compute():
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(100))

ctypes.CDLL(None).cudaProfilerStart()
seconds = float(sys.argv[2])
descend(30, compute if sys.argv[1] == "computes" else lambda: time.sleep(seconds))
ours = [task for task in glob.glob("/proc/self/task/*") if open(task + "/comm").read() == "paceline\\n"]
print(open(max(ours) + "/schedstat").read().split()[0])  # the drain, and the sampler that it started
"""


def main():
    paceline, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 10
    print("| thread | Hz | samples/s | µs of CPU each | bytes/s |\n|---|---|---|---|---|")
    for does in ("computes", "sleeps"):
        plain = None
        for hz in ("off", "100", "1000"):
            with tempfile.TemporaryDirectory() as folder:
                run = pathlib.Path(folder) / "run"
                done = subprocess.run([paceline, "record", "-o", run, "--sample", hz, "--counters", "0", "--capture-range",
                                       "cudaProfilerApi", "--", sys.executable, "-c", PROGRAM, does, str(seconds)],
                                      check=True, capture_output=True, text=True)
                size = sum(file.stat().st_size for file in run.glob("*.pace"))
                if hz == "off":
                    plain = size
                    continue
                rows = subprocess.run([paceline, "query", "--format", "json", run, "SELECT count(*) AS n FROM samples"],
                                      check=True, capture_output=True, text=True).stdout
                samples = json.loads(rows)[0]["n"]
                print(f"| {does} | {hz} | {samples / seconds:.0f} | {float(done.stdout) / 1e3 / samples:.1f} "
                      f"| {(size - plain) / seconds:.0f} |")


main()
