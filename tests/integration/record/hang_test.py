#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: hang_test.py PACELINE WAITS MPIRUN [TEST]

Jobs that hang, as `paceline record --hang`, `info`, `report` and `watch` name them, and one that is only slow. WAITS is the
program of waits.c. Nothing here depends on how fast the machine is: each step waits until it is seen, for two minutes at
most.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import mpirun_end

PACELINE, WAITS, MPIRUN = sys.argv[1:4]
PATIENCE_S = 120
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1", LC_ALL="C.UTF-8",
                   OMPI_MCA_btl_vader_single_copy_mechanism="none")


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def paceline(*arguments):
    return subprocess.run([PACELINE, *map(str, arguments)], capture_output=True, text=True, env=ENVIRONMENT,
                          timeout=PATIENCE_S)


def once(run):
    result = paceline("watch", "--once", "--json", run)
    return json.loads(result.stdout) if result.returncode == 0 else None


def until(what, shown):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = shown()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(f"never seen: {what()}")


class Job:
    """Ranks of waits.c that are recorded with --hang, and killed at the end of the test."""

    def __init__(self, run, ranks, *arguments):
        self.run = run
        self.errors = run.with_suffix(".err")
        with open(self.errors, "w") as errors:
            self.process = subprocess.Popen(
                [MPIRUN, "--bind-to", "none", "-n", str(ranks), PACELINE, "record", "--hang", "2", "-o", str(run), "--",
                 WAITS, *map(str, arguments)],
                env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        mpirun_end.end(self.process)

    def processes(self):
        return [int(re.search(r"-p(\d+)\.pace$", path.name)[1]) for path in self.run.glob("*.pace")]

    def hang_lines(self):
        return [line for line in self.errors.read_text().splitlines() if "hang?" in line]

    def said(self, text, ranks):
        """Waits until `ranks` ranks have printed a line with this text."""
        until(self.errors.read_text, lambda: sum(text in line for line in self.hang_lines()) >= ranks)


def check_everywhere(job, text):
    """`watch` names the hang while the job runs, and `info` and `report` afterwards."""
    frames = []
    until(lambda: frames[-1], lambda: frames.append(once(job.run)) or (frames[-1] and any(
        text in hang for hang in frames[-1]["hangs"])))
    job.kill()
    check(text in paceline("info", job.run).stdout, paceline("info", job.run))
    report = json.loads(paceline("report", "--format", "json", job.run).stdout)["runs"][0]
    check(any(text in hang for hang in report.get("hangs", [])), report.get("hangs"))


def ranks_that_poll_a_collective_hang(directory):
    with Job(directory / "run", 4, "ibarrier") as job:
        job.said("MPI_Ibarrier #2 on MPI_COMM_WORLD has been polled for", 3)
        check(not any("rank 3" in line for line in job.hang_lines()), job.hang_lines())
        check_everywhere(job, "Rank 3 never entered MPI_Ibarrier #2 on MPI_COMM_WORLD; ranks 0, 1 and 2 have waited in it")


def receives_from_each_other_are_named_with_their_tags(directory):
    with Job(directory / "run", 2, "deadlock") as job:
        job.said("MPI_Recv with rank 1 of MPI_COMM_WORLD, tag 7, has been open for", 1)
        job.said("MPI_Recv with rank 0 of MPI_COMM_WORLD, tag 9, has been open for", 1)
        check_everywhere(job, "rank 0 waits in MPI_Recv for rank 1, tag 7; rank 1 waits in MPI_Recv for rank 0, tag 9")


def a_ring_of_receives_is_named(directory):
    with Job(directory / "run", 3, "ring") as job:
        job.said("MPI_Recv with rank", 3)
        check_everywhere(job, "rank 0 waits in MPI_Recv for rank 2, tag 5; rank 2 waits in MPI_Recv for rank 1, tag 5; "
                              "rank 1 waits in MPI_Recv for rank 0, tag 5")


def a_wrong_tag_is_named(directory):
    with Job(directory / "run", 2, "tag") as job:
        job.said("has been open for", 2)
        check_everywhere(job, "Rank 0 never entered MPI_Barrier #2 on MPI_COMM_WORLD; rank 1 has waited in it")
        check("rank 0 waits in MPI_Recv for rank 1, tag 7" in paceline("info", job.run).stdout, paceline("info", job.run))


def a_slow_rank_is_no_hang(directory):
    with Job(directory / "run", 2, "slow", 3) as job:
        polls = 0
        while job.process.poll() is None:
            frame = once(job.run)
            polls += frame is not None
            check(frame is None or not frame["hangs"], frame)
        check(polls > 0, "the job was never watched while it ran")
    check(job.process.returncode == 0, job.errors.read_text())


def a_killed_rank_is_killed_at_the_first_look(directory):
    with Job(directory / "run", 2, "sleeps") as job:
        until(lambda: once(job.run), lambda: len(job.processes()) == 2 and (once(job.run) or {"ranks": []})["ranks"][1:])
        job.kill()
    frame = once(job.run)
    check([rank["state"] for rank in frame["ranks"]] == ["killed", "killed"], frame)
    check(frame["ended"], frame)


def main():
    tests = (ranks_that_poll_a_collective_hang, receives_from_each_other_are_named_with_their_tags,
             a_ring_of_receives_is_named, a_wrong_tag_is_named, a_slow_rank_is_no_hang,
             a_killed_rank_is_killed_at_the_first_look)
    for test in tests:
        if len(sys.argv) > 4 and test.__name__ not in sys.argv[4:]:
            continue
        with tempfile.TemporaryDirectory(prefix="paceline-hang-") as directory:
            test(pathlib.Path(directory))
        print(f"{test.__name__}: as expected", flush=True)


main()
