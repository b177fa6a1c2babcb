#!/usr/bin/env python3
"""usage: include_order.py SOURCES

Checks that includes run one way, between the rooms and inside each room. A file may include its own folder and the
folders that stand before it in its room's list. Prints one line for each include that runs the other way; exit status 1.
"""
import pathlib
import re
import sys

# For each room its folders, the lowest first; "." is the room's own folder. A file counts for the deepest entry that it
# lies in, and a file may have an entry of its own. Folders in one line, separated by spaces, still include each other.
ROOMS = {
    "profiler": [
        "format",
        "record",
        "inject/system",
        "inject/core",
        "inject/sources",
        "inject/sources/watch",
        "inject/sources/clock_exchange",
        "inject/sources/nvtx",
        "inject/sources/mpi",
        "inject/sources/counters",
        "inject",
        "inject/cupti",
        "inject/nccl",
    ],
    "analysis": [
        "trace",
        "index",
        "scaling",
        "text",
        "metrics",
        "run/run_index.h run/run_index.cpp",
        "graph",
        "clocks",
        "importers",
        "load",
        "exporters",
        "run",
        "watch",
        "query",
        "exporters/sqlite.cpp",
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
        "updaters/gradient_pass.h updaters/gradient_pass.cpp",
        "pipeline",
        "updaters",
        "run",
        "cli",
        "main.cpp",
    ],
    "viewer": [
        "drawing/time_text.h drawing/time_text.cpp",  # text alone, which the session writes, too
        "session",
        "drawing",
        "panels",
        "timeline/rows",
        "timeline",
        "window/tab_page.h window/tab_page.cpp",
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

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
SUFFIXES = {".c", ".cpp", ".cu", ".cuh", ".def", ".h"}


def lies_in(path, folder):
    return folder == "." or path == folder or path.startswith(folder + "/")


def deepest(path, folders):
    """The longest of the folders that the path lies in, or None."""
    inside = [folder for folder in folders if lies_in(path, folder)]
    return max(inside, key=lambda folder: (folder != ".", len(folder)), default=None)


def check(sources, rooms=ROOMS, other_rooms=OTHER_ROOMS):
    """Returns the lines to print, and the number of includes that were looked at."""
    wrong, looked_at = [], 0
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
                if other != room:
                    allowed = other_rooms.get(deepest(path, other_rooms), [])
                    if deepest(included, allowed) is None:
                        wrong.append(f"{path} includes {included}: of other rooms it may include "
                                     f"{' and '.join(allowed) or 'nothing'}")
                    continue
                target = deepest(included[len(room) + 1:], level)
                if target is not None and level[target] > level[own]:
                    wrong.append(f"{path} includes {included}: {target} stands above {own}")
    return wrong, looked_at


if __name__ == "__main__":
    problems, count = check(pathlib.Path(sys.argv[1]))
    if count < 1000:
        problems.append(f"only {count} includes were found: does the pattern still fit the code?")
    print("\n".join(problems))
    sys.exit(1 if problems else 0)
