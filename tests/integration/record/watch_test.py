#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: watch_test.py PACELINE STEPS MPIRUN

`paceline watch` on real jobs: while they run, after they ended, on a terminal, and on what is no job. STEPS is the program
of steps.c. Nothing here depends on how fast the machine is: each step waits until it is seen, for two minutes at most.
"""
import fcntl
import json
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

PACELINE, STEPS, MPIRUN = sys.argv[1:4]
PATIENCE_S = 120
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1", LC_ALL="C.UTF-8")
ENVIRONMENT.pop("NO_COLOR", None)


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def paceline(*arguments):
    return subprocess.run([PACELINE, *map(str, arguments)], capture_output=True, text=True, env=ENVIRONMENT, timeout=PATIENCE_S)


def once(run):
    """The present frame, or nothing where no rank has begun yet."""
    result = paceline("watch", "--once", "--json", run)
    return json.loads(result.stdout) if result.returncode == 0 else None


def wait_for(run, shown):
    until = time.monotonic() + PATIENCE_S
    frame = None
    while time.monotonic() < until:
        frame = once(run)
        if frame is not None and shown(frame):
            return frame
        time.sleep(0.1)
    raise AssertionError(f"never shown; the last frame: {frame}")


class Job:
    """A recorded program that is ended at the latest with the test."""

    def __init__(self, run, *arguments, ranks=0):
        record = [PACELINE, "record", "-o", str(run), "--", STEPS, *map(str, arguments)]
        if ranks > 0:
            record = [MPIRUN, "--bind-to", "none", "-n", str(ranks), *record]
        self.process = subprocess.Popen(record, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def wait(self):
        check(self.process.wait(PATIENCE_S) == 0, "the recorded program failed")


class Terminal:
    """`paceline watch` on a pseudo-terminal of its own."""

    def __init__(self, *arguments, width=80, height=24):
        self.main, self.other = pty.openpty()
        self.resize(width, height)
        self.before = termios.tcgetattr(self.other)
        self.output = b""
        self.process = subprocess.Popen([PACELINE, "watch", *map(str, arguments)], env=dict(ENVIRONMENT, TERM="xterm"),
                                        stdin=self.other, stdout=self.other, stderr=self.other, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.main)
        os.close(self.other)

    def resize(self, width, height):
        fcntl.ioctl(self.other, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def read(self, seconds):
        ready, _, _ = select.select([self.main], [], [], seconds)
        if ready:
            self.output += os.read(self.main, 65536)
        return bool(ready)

    def until(self, shown):
        end = time.monotonic() + PATIENCE_S
        while not shown(self.output):
            check(time.monotonic() < end, f"never shown; the output ends with {self.output[-2000:]!r}")
            self.read(0.2)

    def send(self, keys):
        os.write(self.main, keys)

    def ended(self):
        end = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            check(time.monotonic() < end, "watch did not end")
            self.read(0.2)
        while self.read(0.1):
            pass
        return self.process.returncode

    def check_restored(self):
        check(self.output.rfind(b"\x1b[?1049l") > self.output.rfind(b"\x1b[?1049h"), "the alternate screen was left on")
        check(self.output.rfind(b"\x1b[?25h") > self.output.rfind(b"\x1b[?25l"), "the cursor stayed hidden")
        check(termios.tcgetattr(self.other) == self.before, "the terminal's modes were not restored")

    def last_frame(self):
        """The lines of the last whole frame, without colours."""
        frame = self.output.split(b"\x1b[?2026h\x1b[H")[-1].split(b"\x1b[J")[0].decode()
        for sequence in ("\x1b[K", "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[33m"):
            frame = frame.replace(sequence, "")
        return frame.replace("\r", "").split("\n")


def a_run_that_is_watched_ends_with_the_reports_figures(directory):
    run = directory / "job"
    with Job(run, 150, 10, "late", 1, 4, ranks=2) as job:
        frame = wait_for(run, lambda f: f["iterations"]["count"] >= 10)
        check(not frame["ended"] and len(frame["ranks"]) == 2, f"two running ranks expected: {frame}")
        check(all(rank["state"] == "running" for rank in frame["ranks"]), f"running ranks expected: {frame}")
        check(frame["phase_shares"]["backward"] > 0.1, f"backward is missing: {frame}")
        plain = paceline("watch", "--once", run)
        check(plain.returncode == 0 and "\x1b" not in plain.stdout and "2 ranks on 1 host" in plain.stdout, plain)
        following = subprocess.Popen([PACELINE, "watch", "--interval", "0.2", str(run)], env=ENVIRONMENT, text=True,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        job.wait()
        lines, _ = following.communicate(timeout=PATIENCE_S)
        check(following.returncode == 0 and "\x1b" not in lines, lines)
        check(lines.splitlines()[-1].startswith("The job ended after ") and "150 iterations" in lines, lines)
    frame = once(run)
    info = json.loads(paceline("info", "--format", "json", run).stdout)["traces"]
    report = json.loads(paceline("report", "--format", "json", run).stdout)["runs"][0]
    check(frame["ended"], frame)
    check(frame["iterations"]["count"] == report["iterations"]["count"] == 150, (frame["iterations"], report["iterations"]))
    for rank, trace in zip(frame["ranks"], info):
        check(rank["state"] == "ended" and rank["iterations"] == 150, rank)
        check(rank["events"] == {key: trace["events"][key] for key in ("nvtx", "mpi")}, (rank, trace["events"]))


def q_ends_it_and_the_terminal_is_as_before(directory):
    run = directory / "job"
    with Job(run, 100_000, 10):
        wait_for(run, lambda f: f["iterations"]["count"] >= 3)
        with Terminal("--interval", "0.2", run) as terminal:
            terminal.until(lambda output: b"phases:" in output and b"newest" in output)
            check(termios.tcgetattr(terminal.other) != terminal.before, "keys are not read at once")
            # Another size is followed.
            seen = len(terminal.output)
            terminal.resize(50, 9)
            terminal.process.send_signal(signal.SIGWINCH)
            terminal.until(lambda output: output.count(b"\x1b[?2026l", seen) >= 2)
            lines = terminal.last_frame()
            check(len(lines) <= 9 and all(len(line) <= 50 for line in lines), lines)
            terminal.send(b"q")
            check(terminal.ended() == 0, terminal.process.returncode)
            terminal.check_restored()
        with Terminal("--interval", "0.2", run) as terminal:
            terminal.until(lambda output: b"newest" in output)
            terminal.send(b"\x03")
            check(terminal.ended() == -signal.SIGINT, terminal.process.returncode)
            terminal.check_restored()


def it_waits_for_a_run_and_ends_with_it(directory):
    run = directory / "later"
    with Terminal("--interval", "0.2", run) as terminal:
        terminal.until(lambda output: b"does not exist yet; waiting" in output)
        with Job(run, 20, 5) as job:
            job.wait()
        check(terminal.ended() == 0, terminal.output)
        terminal.check_restored()
        check(b"The job ended after" in terminal.output.split(b"\x1b[?1049l")[-1], terminal.output)


def a_killed_process_is_one_line(directory):
    run = directory / "job"
    with Job(run, 100_000, 10) as job:
        wait_for(run, lambda f: f["iterations"]["count"] >= 3)
        job.kill()
    frame = wait_for(run, lambda f: True)
    following = paceline("watch", "--interval", "0.1", run)
    check(following.returncode == 0 and "Rank 0 did not end by itself" in following.stdout, following)
    check(frame["ranks"][0]["iterations"] >= 3, frame)


def a_hang_is_named_and_hostile_names_are_text(directory):
    run = directory / "job"
    hostile = "x\x1b]0;owned\x07\x1b[2Jy"
    with Job(run, 100, 5, "hang", 1, 5, "name", hostile, ranks=2):
        frame = wait_for(run, lambda f: f["hangs"])
        check("Rank 1 never entered MPI_Allreduce #6" in frame["hangs"][0], frame)
        with Terminal("--interval", "0.2", run, width=120) as terminal:
            terminal.until(lambda output: b"hang: Rank 1" in output and b"owned" in output)
            terminal.send(b"q")
            check(terminal.ended() == 0, terminal.output)
            terminal.check_restored()
            check(b"\x07" not in terminal.output and b"\x1b]" not in terminal.output, terminal.output)
            check(terminal.output.count(b"\x1b[2J") == 1, "only watch itself clears the screen")
        plain = paceline("watch", "--once", run).stdout
        check("owned" in plain and all(c >= " " or c == "\n" for c in plain), repr(plain))


def what_is_no_job_is_refused_in_one_line(directory):
    (directory / "empty").mkdir()
    for run, why in (("empty", "no rank has written a trace yet"), ("absent", "does not exist yet")):
        result = paceline("watch", "--once", directory / run)
        check(result.returncode == 1 and why in result.stderr, result)
        check(result.stderr.count("\n") == 1 and result.stdout == "", result)
    check(paceline("watch", "--interval", "0", directory).returncode == 2, "an interval of 0 is no interval")


def main():
    for test in (a_run_that_is_watched_ends_with_the_reports_figures, q_ends_it_and_the_terminal_is_as_before,
                 it_waits_for_a_run_and_ends_with_it, a_killed_process_is_one_line,
                 a_hang_is_named_and_hostile_names_are_text, what_is_no_job_is_refused_in_one_line):
        with tempfile.TemporaryDirectory(prefix="paceline-watch-") as directory:
            test(pathlib.Path(directory))
        print(f"{test.__name__}: as expected")


main()
