#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: native_stacks_test.py PACELINE PROGRAM DENIED FIRST OTHER

Samples of the functions of C and C++. PROGRAM is that of native_stacks.cpp, DENIED that of denied.c, FIRST and OTHER are the
libraries of changed_library.c. Ends with 77 where the
system does not say where a running thread is.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

PACELINE, PROGRAM, DENIED, FIRST, OTHER = sys.argv[1:]


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def stacks(run, *command, before=()):
    """The sampled stacks of all threads, with their numbers of samples, and what the recorder said."""
    done = subprocess.run([*before, PACELINE, "record", "-o", run, "--sample", "100", "--sample-threads", "all", "--counters",
                           "0", "--", *command], capture_output=True, text=True, timeout=200)
    check(done.returncode == 0, done)
    frames, counts = {}, {}
    for row in query(run, "SELECT stack, function, file FROM frames ORDER BY stack, depth"):
        frames.setdefault(row["stack"], []).append((row["function"], pathlib.Path(row["file"] or "").name))
    for row in query(run, "SELECT stack, count(*) AS n FROM samples GROUP BY stack"):
        counts[tuple(frames.get(row["stack"], ()))] = row["n"]
    return counts, done.stderr


def query(run, sql):
    done = subprocess.run([PACELINE, "query", "--format", "json", run, sql], capture_output=True, text=True, timeout=100)
    check(done.returncode == 0, done)
    return json.loads(done.stdout)


def samples_of(found, *wanted):
    """Of stacks that begin with these functions."""
    return sum(count for stack, count in found.items() if tuple(name for name, _ in stack)[:len(wanted)] == wanted)


COMPUTING = {
    "directly": ("main", "places::compute"),
    "alloca": ("main", "places::with_alloca", "places::compute"),
    "aligned": ("main", "places::with_aligned_stack", "places::compute"),
    "deep": ("main", *["places::deep"] * 301, "places::compute"),
    "thread": ("thread_function", "places::compute"),
}
BLOCKED = {
    "nanosleep": ("main", "places::wait_for_time", "[clock_nanosleep]"),
    "lock": ("main", "places::wait_for_lock", "[futex]"),
}

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    found, said = stacks(folder / "run", PROGRAM)
    for what, wanted in BLOCKED.items():
        check(samples_of(found, *wanted) >= 10, f"{what}: {found}")
    if "perf_event_open is not allowed" in said:
        print("skipped: perf_event_open is not allowed here")
        sys.exit(77)
    # 40 samples each, were the machine idle.
    for what, wanted in COMPUTING.items():
        if what == "deep":  # more functions than are kept: the innermost ones
            wanted = ("places::deep",) * 100
            check(sum(count for stack, count in found.items() if tuple(f for f, _ in stack)[-101:-1] == wanted) >= 10, what)
            continue
        check(samples_of(found, *wanted) >= 10, f"{what}: {found}")
    # A handler runs above the function that was interrupted.
    handled = sum(count for stack, count in found.items() if [f for f, _ in stack][:2] == ["main", "places::interrupted"]
                  and "places::handler" in [f for f, _ in stack])
    check(handled >= 10, found)
    check(all(file == pathlib.Path(PROGRAM).name for stack in found for function, file in stack if "places" in function), found)
    lost = sum(count for stack, count in found.items() if stack and stack[0][0] == "(callers not known)")
    deep = sum(count for stack, count in found.items() if "places::deep" in [f for f, _ in stack])
    total = sum(found.values())
    check(lost <= (total - deep) / 50, f"{lost} of {total} samples do not reach the program's first function")
    print(f"{total} samples, {lost} without their callers")

    stripped = folder / "stripped"
    shutil.copy(PROGRAM, stripped)
    subprocess.run(["strip", stripped], check=True)
    found, _ = stacks(folder / "run-stripped", stripped)
    check(samples_of(found, "main", "places::with_aligned_stack", "places::compute") >= 10, found)  # exported: -rdynamic

    # A library at the addresses of one that was closed: within a second its functions have their own names.
    # Twice the first one, because memory that the recorder frees at the start may be where the next library goes.
    found, _ = stacks(folder / "run-changed", PROGRAM, FIRST, FIRST, OTHER)
    changed = {name: samples_of(found, "main", "run_for_seconds", f"{name}_compute") for name in ("first", "other")}
    check(min(changed.values()) >= 50, f"{changed}: {found}")

    # A filter of system calls: nothing is tried that could end the program.
    if subprocess.run([DENIED, "KILL", "true"]).returncode != 77:
        found, said = stacks(folder / "run-denied", PROGRAM, before=[DENIED, "KILL"])
        check("perf_event_open is not allowed" in said, said)
        check(samples_of(found, *BLOCKED["nanosleep"]) >= 10, found)
