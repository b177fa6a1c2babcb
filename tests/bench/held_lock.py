#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: held_lock.py PACELINE

Records two ranks of which one has a thread that holds Python's lock (causes_ddp.py held_lock, 300 steps), and asks perf how long
the main thread of that rank waited for the lock, with the time until it had a CPU again. Prints that beside what the report says.

Run it as root with Debian's /usr/bin/python3, which has torch, and perf (linux-perf).
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from mpi_environment import MPI_ENVIRONMENT

HERE = pathlib.Path(__file__).resolve().parent
EVENTS = ("syscalls:sys_enter_futex", "syscalls:sys_exit_futex")
LINE = re.compile(r"\s*(\d+)\s+([\d.]+):\s+(\S+): (.*)")
WAITS = (0, 9)  # FUTEX_WAIT, FUTEX_WAIT_BITSET


def waits_of(text, thread):
    """How often and how long the thread waited on each futex."""
    waits, call = {}, None
    for found in filter(None, map(LINE.match, text)):
        if int(found[1]) != thread:
            continue
        if found[3].endswith("enter_futex"):
            futex = re.search(r"uaddr: (0x[0-9a-f]+), op: (0x[0-9a-f]+)", found[4])
            call = (float(found[2]), int(futex[1], 16) & ~7, int(futex[2], 16) & 0x7F)
        elif call:
            if call[2] in WAITS:
                waits.setdefault(call[1], []).append(float(found[2]) - call[0])
            call = None
    return waits


def main():
    paceline = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        more = {"CAUSES_STORE": f"file://{folder}/store", "CAUSES_FOLDER": folder, "OMP_NUM_THREADS": "1"}
        job = ["mpirun", "--bind-to", "none", "--oversubscribe", "-n", "2", paceline, "record", "-o", f"{folder}/trace",
               "--pytorch", "--", sys.executable, str(HERE / "causes_ddp.py"), "held_lock", "300"]
        subprocess.run(["perf", "record", "-q", "-a", "-m", "4096", "-o", f"{folder}/perf.data",
                        *(word for event in EVENTS for word in ("-e", event)), "--", *job], check=True,
                       stdout=subprocess.DEVNULL, env=os.environ | MPI_ENVIRONMENT | more)
        text = subprocess.run(["perf", "script", "-i", f"{folder}/perf.data", "-F", "tid,time,event,trace"], check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.splitlines()
        thread = int(re.search(r"-p(\d+)", next(file.name for file in pathlib.Path(folder, "trace").glob("*-r1-*")))[1])
        report = json.loads(subprocess.run([paceline, "report", "--format", "json", f"{folder}/trace"], check=True,
                                           stdout=subprocess.PIPE, text=True).stdout)
    lock = max(waits_of(text, thread).values(), key=len)  # of all waits, those for Python's lock are by far the most
    caused = next(of for of in report["runs"][0]["per_rank"] if of["rank"] == 1)["causes"]["caused_ns"]
    print(f"rank 1 waited {len(lock)} times for the lock, {sum(lock):.2f} s in all; what the other waited for it, says the report: "
          f"blocked {caused['blocked'] / 1e9:.2f} s, no CPU {caused['no_cpu'] / 1e9:.2f} s")


if __name__ == "__main__":
    main()
