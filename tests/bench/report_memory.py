#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: report_memory.py PACELINE SYNTHETIC_RANKS [--ranks 512] [--steps 200] [--ranges 20] [--allreduces 4]
                        [--processes 1,2] [--whole]

The memory and time of `paceline report` on a synthetic job of many ranks, read as a whole and rank by rank, by one process
and by several under mpirun: the largest resident set of any process, and whether all reports have the same bytes.
"""
import argparse
import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time

from mpi_environment import MPI_ENVIRONMENT


def follow(command, mark):
    """Runs the command; the largest resident set, in MiB, of each process `paceline…` with `mark` on its command line."""
    largest = {}
    process = subprocess.Popen(command, env=MPI_ENVIRONMENT, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                    words = file.read().split("\0")
                if mark not in words or "paceline" not in os.path.basename(words[0]):
                    continue
                with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                    peak = next(line for line in file if line.startswith("VmHWM"))
                largest[pid] = int(peak.split()[1]) / 1024
            except (OSError, StopIteration):
                continue
        time.sleep(0.02)
    if process.returncode != 0:
        sys.exit(f"{command[0]} failed")
    return sorted(largest.values())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("paceline")
    parser.add_argument("synthetic_ranks")
    parser.add_argument("--ranks", type=int, default=512)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--ranges", type=int, default=20)
    parser.add_argument("--allreduces", type=int, default=4)
    parser.add_argument("--processes", default="1,2")
    parser.add_argument("--whole", action="store_true", help="also read as a whole, by one process")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="paceline-report-memory-") as directory:
        run = os.path.join(directory, "run")
        subprocess.run([arguments.synthetic_ranks, run, str(arguments.ranks), str(arguments.steps), str(arguments.ranges),
                        str(arguments.allreduces), "3"], check=True)
        size = sum(os.path.getsize(os.path.join(run, name)) for name in os.listdir(run))
        slices = arguments.ranks * arguments.steps * (4 + 2 * arguments.ranges + arguments.allreduces)
        print(f"{arguments.ranks} ranks, {slices / 1e6:.1f} million slices, {size / 1e6:.0f} MB of files", flush=True)
        ways = [(1, "400000000")] if arguments.whole else []
        ways += [(int(processes), "1") for processes in arguments.processes.split(",")]
        seen = {}
        for processes, slots in ways:
            output = os.path.join(directory, "report.json")
            command = [arguments.paceline, "report", "--whole-run-slots", slots, "-o", output, run]
            if processes > 1:
                command = ["mpirun", "--bind-to", "none", "-n", str(processes), *command]
            began, cpu = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
            largest = follow(command, output)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            with open(output, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()[:12]
            seen.setdefault(slots, set()).add(digest)
            print(f"{'as a whole' if slots != '1' else 'rank by rank'}, {processes} process{'es' if processes > 1 else ''}: "
                  f"resident at most {', '.join(f'{mib:.0f}' for mib in largest)} MiB, {time.monotonic() - began:.1f} s, "
                  f"{after.ru_utime - cpu.ru_utime:.1f} s of CPU time, report {digest}", flush=True)
        return 0 if all(len(digests) == 1 for digests in seen.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
