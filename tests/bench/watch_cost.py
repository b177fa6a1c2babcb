#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: watch_cost.py PACELINE STEPS [--ranks 64] [--seconds 30] [--step-ms 250] [--ranges 100] [--interval 2]

What `paceline watch` costs. Records RANKS processes of STEPS (tests/record/record_steps of a build) under mpirun, watches
them on a pseudo-terminal of 80 × 70, and prints the CPU time of the watching process as a share of one core, beside the
rate of the events that it followed. CPU time hardly depends on what else runs on the machine.
"""
import argparse
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import tempfile
import termios
import threading
import time

from mpi_environment import MPI_ENVIRONMENT


def start_watch(arguments, run):
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 70, 80, 0, 0))
    process = subprocess.Popen([arguments.paceline, "watch", "--interval", str(arguments.interval), run], stdin=other,
                               stdout=other, env=dict(os.environ, TERM="xterm"))
    os.close(other)
    screen = [b""]

    def drain():
        try:
            while data := os.read(main, 65536):
                screen[0] = (screen[0] + data)[-100_000:]
        except OSError:
            pass

    threading.Thread(target=drain, daemon=True).start()
    return process, screen


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def once(arguments, run):
    result = subprocess.run([arguments.paceline, "watch", "--once", "--json", run], capture_output=True, text=True)
    return json.loads(result.stdout) if result.returncode == 0 else {"ranks": []}


def events_of(frame):
    return sum(sum(rank["events"].values()) for rank in frame["ranks"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("paceline")
    parser.add_argument("steps")
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--step-ms", type=float, default=250)
    parser.add_argument("--ranges", type=int, default=100)
    parser.add_argument("--interval", type=float, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="paceline-watch-cost-") as directory:
        run = os.path.join(directory, "run")
        job = subprocess.Popen(["mpirun", "--bind-to", "none", "-n", str(arguments.ranks), arguments.paceline, "record", "-o",
                                run, "--", arguments.steps, "1000000", str(arguments.step_ms), "ranges",
                                str(arguments.ranges)], env=MPI_ENVIRONMENT, start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while True:
                frame = once(arguments, run)
                if len(frame["ranks"]) == arguments.ranks and frame["iterations"]["count"] >= 3:
                    break
                time.sleep(1)
            watch, screen = start_watch(arguments, run)
            time.sleep(2 * arguments.interval)  # the first refresh reads what was there before
            before, events, began = cpu_seconds(watch.pid), events_of(once(arguments, run)), time.monotonic()
            time.sleep(arguments.seconds)
            used, elapsed = cpu_seconds(watch.pid) - before, time.monotonic() - began
            frame = once(arguments, run)
            events = events_of(frame) - events
            watch.send_signal(signal.SIGTERM)
            watch.wait()
        finally:
            os.killpg(job.pid, signal.SIGTERM)
            job.wait()
    lines = screen[0].decode(errors="replace").split("\x1b[?2026h\x1b[H")[-1].split("\x1b[J")[0].replace("\r", "").split("\n")
    print(f"ranks {arguments.ranks}, refresh every {arguments.interval:g} s, {frame['iterations']['count']} iterations, "
          f"{events / elapsed:.0f} events/s, lines on the screen {len(lines)}")
    print(f"watch used {used:.2f} s of CPU time in {elapsed:.1f} s: {100 * used / elapsed:.2f} % of a core")


if __name__ == "__main__":
    main()
