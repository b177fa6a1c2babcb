#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: report_mpi_test.py PACELINE SYNTHETIC_RANKS MPIRUN

`mpirun -n K paceline report` gives the same bytes as one process, for runs that are read as a whole and for those that are
read rank by rank, in every format; failures of any process are one line.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PACELINE, SYNTHETIC_RANKS, MPIRUN = sys.argv[1:4]
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1", LC_ALL="C.UTF-8")
for variable in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
    ENVIRONMENT.pop(variable, None)


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def report(processes, directory, *arguments, paceline=PACELINE):
    command = [paceline, "report", *arguments]
    if processes > 0:
        command = [MPIRUN, "--bind-to", "none", "-n", str(processes), *command]
    return subprocess.run(command, cwd=directory, capture_output=True, env=ENVIRONMENT, timeout=300)


def synthesise(directory, name, ranks, steps, *more):
    subprocess.run([SYNTHETIC_RANKS, name, str(ranks), str(steps), *map(str, more)], cwd=directory, check=True)


def own_lines(result):
    return [line for line in result.stderr.decode().splitlines() if line.startswith("paceline report: ")]


def every_number_of_processes_gives_the_same_bytes(directory):
    synthesise(directory, "run1", 1, 60, 4, 2)
    synthesise(directory, "run2", 2, 60, 4, 2)
    synthesise(directory, "run5", 5, 60, 4, 2, 3)
    for options in ([], ["--whole-run-slots", "1"]):
        for runs in (["run5"], ["run1", "run2", "run5"]):
            folder = directory / "alone"
            shutil.rmtree(folder, ignore_errors=True)
            formats = ["--format", "html,md,json,csv,text"]
            alone = report(0, directory, *formats, *options, "-o", "alone", *runs)
            check(alone.returncode == 0, alone)
            check((b"rank by rank" in alone.stderr) == bool(options), alone)
            for processes in ((2, 3) if len(runs) > 1 else (1, 2, 3)):
                shutil.rmtree(directory / "shared", ignore_errors=True)
                shared = report(processes, directory, *formats, *options, "-o", "shared", *runs)
                check(shared.returncode == 0 and own_lines(shared) == own_lines(alone), shared)
                for file in sorted(path.name for path in folder.iterdir()):
                    check((directory / "shared" / file).read_bytes() == (folder / file).read_bytes(),
                          f"{file} differs with {processes} processes, {options}, {runs}")
        alone, shared = report(0, directory, *options, "run5"), report(2, directory, *options, "run5")
        check(shared.stdout == alone.stdout and len(alone.stdout) > 500, shared)
        check(b"Rank 3 " in alone.stdout, "the late rank is named")


def failures_are_one_line(directory):
    synthesise(directory, "run2", 2, 30)
    for run in ("absent", "notes"):
        (directory / "notes").mkdir(exist_ok=True)
        result = report(2, directory, run)
        check(result.returncode != 0 and result.stdout == b"", result)
        check(len(own_lines(result)) == 1 and run in own_lines(result)[0], result)
    # A file of the second process's share is damaged: noted as one process notes it.
    damaged = next((directory / "run2").glob("*-r1.pace"))
    content = damaged.read_bytes()
    damaged.write_bytes(content[:len(content) - 50])
    options = ["--whole-run-slots", "1", "run2"]
    alone, shared = report(0, directory, *options), report(2, directory, *options)
    check(shared.stdout == alone.stdout and b"amage" in alone.stdout, shared)
    check(report(2, directory, "--no-such-option", "run2").stderr.decode().count("paceline report") >= 1, "usage")


def without_the_helper_one_process_says_so(directory):
    (directory / "bin").mkdir()
    shutil.copy(PACELINE, directory / "bin" / "paceline")
    synthesise(directory, "run2", 2, 30)
    result = report(2, directory, "run2", paceline=str(directory / "bin" / "paceline"))
    check(result.returncode != 0 and result.stdout == b"", result)
    check(len(own_lines(result)) == 1 and "PACELINE_MPI=ON" in own_lines(result)[0], result)
    check(report(1, directory, "run2", paceline=str(directory / "bin" / "paceline")).returncode == 0, "one process")


def main():
    for test in (every_number_of_processes_gives_the_same_bytes, failures_are_one_line,
                 without_the_helper_one_process_says_so):
        with tempfile.TemporaryDirectory(prefix="paceline-report-mpi-") as directory:
            test(pathlib.Path(directory))
        print(f"{test.__name__}: as expected", flush=True)


main()
