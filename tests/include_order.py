#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: include_order.py SOURCES

Checks that includes run one way, between the rooms and inside each room. A file may include its own folder and the
folders that stand before it in its room's list. A unit is a header with its source file: no units include each other in
a circle. Prints one line for each include that runs the other way and for each circle; exit status 1.
"""
import collections
import pathlib
import re
import sys

# For each room its folders, the lowest first; "." is the room's own folder. A file counts for the deepest entry that it
# lies in. Folders in one line, separated by spaces, still include each other.
ROOMS = {
    "profiler": [
        "format",
        "launch",
        "record",
        "inject/system",
        "inject/buffer",
        "inject/output",
        "inject/process",
        "inject/sources",
        "inject/sources/scheduler",
        "inject/sources/watch",
        "inject/sources/clock_exchange",
        "inject/sources/nvtx",
        "inject/sources/script",
        "inject/sources/mpi",
        "inject/sources/counters",
        "inject/sources/stacks",
        "inject/sources/sampling",
        "inject",
        "inject/cupti",
        "inject/nccl",
    ],
    "analysis": [
        "trace",
        "index",
        "statistics",
        "scaling",
        "text",
        "phases",
        "device",
        "communication",
        "run/index",
        "causes",
        "graph",
        "clocks",
        "importers",
        "load",
        "run",
        "watch",
        "query",
        "exporters",
        "report",
        "compare",
        "python",
        "cli",
        "mpi",
    ],
    "trainer": [
        "core",
        "nn",
        "optim",
        "comm",
        "data",
        "backend/cpu",
        "backend/cuda",
        "comm/gpu",
        "updaters",
        "pipeline",
        "guard",
        "reporting",
        "checkpoint",
        "run",
        "cli",
        "main.cpp",
    ],
    "viewer": [
        "text",
        "session",
        "drawing",
        "panels",
        "timeline/rows",
        "timeline",
        "comparison",
        "merging",
        "window",
        ".",
    ],
}

# What a room, or a folder of it, may include of other rooms.
OTHER_ROOMS = {
    "analysis": ["profiler/format"],
    "analysis/cli": ["profiler/format", "profiler/record"],
    "viewer": ["analysis", "profiler/format"],
}

# Folders that share only what stands below both: the first may not include the second, nor the second the first.
APART = [("profiler/record", "profiler/inject")]

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
SUFFIXES = {".c", ".cpp", ".cu", ".cuh", ".def", ".h"}


def lies_in(path, folder):
    return folder == "." or path == folder or path.startswith(folder + "/")


def deepest(path, folders):
    """The longest of the folders that the path lies in, or None."""
    inside = [folder for folder in folders if lies_in(path, folder)]
    return max(inside, key=lambda folder: (folder != ".", len(folder)), default=None)


def circles(included):
    """The circles of a graph, given as the set of nodes that each node leads to: sorted lists of nodes that all lead to
    each other (Tarjan's strongly connected components)."""
    number, lowest, path, found = {}, {}, [], []

    def visit(node):
        number[node] = lowest[node] = len(number)
        path.append(node)
        for other in sorted(included.get(node, ())):
            if other not in number:
                visit(other)
            if other in path:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == number[node]:
            start = path.index(node)
            if len(path) - start > 1:
                found.append(sorted(path[start:]))
            del path[start:]

    for node in sorted(included):
        if node not in number:
            visit(node)
    return found


def check(sources, rooms=ROOMS, other_rooms=OTHER_ROOMS):
    """Returns the lines to print, and the number of includes that were looked at."""
    wrong, looked_at, units = [], 0, collections.defaultdict(set)
    for room, lines in rooms.items():
        level = {folder: number for number, line in enumerate(lines) for folder in line.split()}
        for file in sorted((sources / room).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            path = file.relative_to(sources).as_posix()
            own = deepest(path[len(room) + 1:], level)
            if own is None:
                wrong.append(f"{path}: its folder is not in the table of tests/include_order.py: add it")
                continue
            for included in INCLUDE.findall(file.read_text(errors="replace")):
                other = included.split("/")[0]
                if other not in rooms:
                    continue
                looked_at += 1
                if (sources / included).exists():
                    units[path.rsplit(".", 1)[0]].add(included.rsplit(".", 1)[0])
                if other != room:
                    allowed = other_rooms.get(deepest(path, other_rooms), [])
                    if deepest(included, allowed) is None:
                        wrong.append(f"{path} includes {included}: of other rooms it may include "
                                     f"{' and '.join(allowed) or 'nothing'}")
                    continue
                if any(lies_in(path, a) and lies_in(included, b) for pair in APART for a, b in (pair, pair[::-1])):
                    wrong.append(f"{path} includes {included}: these folders share only what stands below both")
                target = deepest(included[len(room) + 1:], level)
                if target is not None and level[target] > level[own]:
                    wrong.append(f"{path} includes {included}: {target} stands above {own}")
    wrong += [f"include each other in a circle: {', '.join(circle)}" for circle in circles(units)]
    return wrong, looked_at


if __name__ == "__main__":
    problems, count = check(pathlib.Path(sys.argv[1]))
    if count < 1000:
        problems.append(f"only {count} includes were found: does the pattern still fit the code?")
    print("\n".join(problems))
    sys.exit(1 if problems else 0)
