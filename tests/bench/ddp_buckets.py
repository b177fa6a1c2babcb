#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: ddp_buckets.py PACELINE [PACELINE-TRAIN]

A delay of rank 1 before backward, in gradients of 1, 2 and 13 buckets: PyTorch's DistributedDataParallel over gloo, and
the trainer's updater `overlap` over MPI. Prints how late the report calls the rank beside how long it really slept.

The ranks of DistributedDataParallel differ by more than the sleep: gloo averages the delayed rank's buckets during its
backward, which takes longer for each of them, while the other rank's buckets wait until its backward is over. How much longer
the delayed rank's own ranges took, its wait left out, is therefore printed and added to the sleep. The program fails where
the medians over the iterations differ from that by more than 10 % of the sleep, where a rank waits for longer than it is
blocked, or where the report names a phase other than that of the delay.

Run it with an interpreter that has torch, such as Debian's /usr/bin/python3.
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from mpi_environment import MPI_ENVIRONMENT

ITERATIONS = os.environ.get("ITERATIONS", "200")
PYTORCH = pathlib.Path(__file__).resolve().parent.parent / "integration/pytorch"


def output(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def longer_ns(paceline, folder):
    """How much longer the ranges of rank 1's steps took than those of rank 0, without the waits in them."""
    rows = json.loads(output(paceline, "query", "--format", "json", folder,
                             "SELECT rank, name, duration_ns FROM slices WHERE name IN "
                             "('forward', 'backward', 'optimizer', 'zero_grad', 'wait')"))
    work = [0, 0]
    for name in {row["name"] for row in rows}:
        for rank in (0, 1):
            median = statistics.median(row["duration_ns"] for row in rows if (row["rank"], row["name"]) == (rank, name))
            work[rank] += -median if name == "wait" else median
    return work[1] - work[0]


def judge(name, paceline, folder, slept_ns, longer, phases):
    run = json.loads(output(paceline, "report", "--format", "json", folder))["runs"][0]
    lateness = run["heat_map"]["ns"]
    late_ns = statistics.median(second - first for first, second in zip(*lateness))
    named = [(rank["rank"], rank.get("phase")) for rank in run["lateness"]["slow_ranks"]]
    blocked = max(rank["waits"]["blocked_ns"] / rank["wall_ns"] for rank in run["per_rank"])
    right = abs(late_ns - slept_ns - longer) < 0.1 * slept_ns and blocked <= 1
    right = right and all(rank["waits"]["waited_ns"] <= rank["waits"]["blocked_ns"] for rank in run["per_rank"])
    right = right and all(rank == 1 and phase in phases for rank, phase in named)
    mean = [f"{rank['late_ns'] / 1e6:.1f}" for rank in run["lateness"]["slow_ranks"]]
    print(f"{'ok' if right else 'WRONG':6}{name:22}slept {slept_ns / 1e6:.2f} ms + {longer / 1e6:.2f} ms, late {late_ns / 1e6:6.2f} ms (mean "
          f"{', '.join(mean) or 'not judged or not named'}), step {run['iterations']['median_ns'] / 1e6:.1f} ms, "
          f"blocked {100 * blocked:.1f} % at most, named {named}", flush=True)
    return right


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    paceline, right = os.path.abspath(sys.argv[1]), True
    with tempfile.TemporaryDirectory() as folder:
        for buckets in (1, 2, 13):
            run = os.path.join(folder, f"ddp{buckets}")
            said = output(paceline, "record", "--pytorch", "-o", run, "--", sys.executable, PYTORCH / "launch.py", "2",
                          PYTORCH / "buckets.py", str(buckets), ITERATIONS, env=dict(os.environ, OMP_NUM_THREADS="1"))
            slept_ns = 1e6 * float(re.search(r"slept ([0-9.]+) ms", said).group(1))
            right &= judge(f"gloo, {plural(buckets)}", paceline, run, slept_ns, longer_ns(paceline, run), {"other"})
        for megabytes in (100, 12, 1) if len(sys.argv) > 2 else ():
            run = os.path.join(folder, f"overlap{megabytes}")
            output("mpirun", "--bind-to", "none", "-n", "2", paceline, "record", "-o", run, "--", sys.argv[2], "--threads", "1",
                   "--synthetic", "--image-size", "32", "--train-images", "512", "--test-images", "4", "--batch-size", "2",
                   "--eval-every", "0", "--width", "0.25", "--iterations", ITERATIONS, "--communicator", "mpi",
                   "--updater", "overlap", "--bucket-mb", str(megabytes), "--fault", "slow-rank=1:30", env=MPI_ENVIRONMENT)
            rows = json.loads(output(paceline, "query", "--format", "json", run,
                                     "SELECT duration_ns FROM slices WHERE name = 'slow-rank'"))
            slept_ns = statistics.median(row["duration_ns"] for row in rows)
            right &= judge(f"overlap, {megabytes} MiB", paceline, run, slept_ns, 0, {"forward", "other"})
    sys.exit(not right)


def plural(buckets):
    return f"{buckets} bucket{'s' if buckets > 1 else ''}"


if __name__ == "__main__":
    main()
