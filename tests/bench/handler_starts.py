#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts programs whose signal handler emits NVTX ranges, with the recorder and with a library that does nothing.

    handler_starts.py RECORDER PROGRAM PACELINE NO_TOOL [--starts 200] [--limit SECONDS] [--only nvtx|mpi]

RECORDER is libpaceline-inject.so, with libpaceline-nvtx.so beside it; PROGRAM is record_handlers (tests/integration/record/handlers.c) and NO_TOOL an
injection library that does nothing (libnothing_injected.so). For each way to start it prints how many starts
hung or crashed with either library, and checks that every file reads and has as many pops as pushes. The exit status is
1 if one did after NVTX had been initialised, or if a file is damaged. Where the handler itself initialises NVTX, a start
can hang inside NVTX with any library, or crash, because NVTX allocates memory. There the two counts are to be compared.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from read_trace import Trace  # noqa: E402

PUSH, POP = 16, 18  # types of docs/trace-format.md


def start(command, environment, limit_s):
    """Returns whether the program ended well, within the limit."""
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        errors = process.communicate(timeout=limit_s)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return False
    if process.returncode != 0:
        print(f"{' '.join(command)}: status {process.returncode}: {errors.decode()[-300:]}", file=sys.stderr)
    return process.returncode == 0


def damaged_files(paceline, directory):
    """The files of a directory that cannot be read whole or whose ranges are not balanced."""
    bad = []
    for file in sorted(pathlib.Path(directory).glob("*.pace")):
        shown = subprocess.run([paceline, "info", "--format", "json", str(file)], capture_output=True, text=True)
        whole = shown.returncode == 0 and not json.loads(shown.stdout)["traces"][0]["damaged"]
        count = collections.Counter(event.type for events in Trace(file).tracks.values() for event in events)
        if not whole or count[PUSH] != count[POP]:
            bad.append(file.name)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("recorder", "program", "paceline", "no_tool"):
        parser.add_argument(name)
    parser.add_argument("--starts", type=int, default=200)
    parser.add_argument("--limit", type=float, default=30)
    parser.add_argument("--only", choices=("nvtx", "mpi"))
    options = parser.parse_args()
    base = {key: value for key, value in os.environ.items() if not key.startswith("PACELINE")}
    base |= {"OMPI_MCA_plm_rsh_agent": "", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
    nvtx_tool = str(pathlib.Path(options.recorder).with_name("libpaceline-nvtx.so"))
    failed = False
    print(f"{'program':8} {'NVTX':7} {'period':>8} {'starts':>7} {'failed: recorder':>17} {'no tool':>8} {'bad files':>10}")
    for library in (options.only,) if options.only else ("nvtx", "mpi"):
        for moment in ("before", "during", "child"):
            for period_us in (1000, 100):
                command = [options.program, str(period_us), library, moment]
                with tempfile.TemporaryDirectory() as directory:
                    recorded = base | {"LD_PRELOAD": f"{options.recorder}:{nvtx_tool}",  # as `paceline record` does
                                       "NVTX_INJECTION64_PATH": nvtx_tool, "PACELINE_OUTPUT": directory}
                    nothing = base | {"LD_PRELOAD": options.no_tool, "NVTX_INJECTION64_PATH": options.no_tool}
                    failed_starts = [0, 0]
                    for _ in range(options.starts):
                        for which, environment in enumerate((recorded, nothing)):
                            failed_starts[which] += not start(command, environment, options.limit)
                    bad = damaged_files(options.paceline, directory)
                failed |= bool(bad) or (moment != "during" and failed_starts[0] > 0)
                print(f"{library:8} {moment:7} {period_us:5} µs {options.starts:7} {failed_starts[0]:17} {failed_starts[1]:8} {len(bad):10}",
                      flush=True)
    sys.exit(1 if failed else 0)


main()
