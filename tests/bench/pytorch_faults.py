#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: pytorch_faults.py PACELINE PYTHON [WAY[:FAULT]…]

Twelve faults of rank 1, of two, in five ways of training, and what `paceline report` and `info` say: rank, phase and delay, or
the collective in which the other rank waits. Rank 1 measures its own delay. Prints a table in Markdown; ends with 1 if a row is wrong.
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

HERE = pathlib.Path(__file__).resolve().parent
LAUNCH = str(HERE.parent / "integration/pytorch/launch.py")
PROGRAM = str(HERE / "pytorch_faults_program.py")
WAYS = ("ddp-1", "ddp-2", "ddp-13", "fsdp2", "tensor")
MILLISECONDS = "60"
# By fault: the phases that are right.
DELAYS = {"sleep": ("other",), "loader": ("preprocess",), "batch": ("forward",), "gc": ("other",), "starvation": ("other",),
          "hook": ("backward",), "buckets": ("backward",)}
HANGS = ("hang-sleep", "hang-loader", "hang-backward", "hang-other", "death")


def output_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def recorded(paceline, python, way, fault, folder):
    """What the job printed. A job that hangs is ended once a rank has said so for a while; on a machine with too few
    processors for all its programs, one that does not hang may say so, too."""
    errors = f"{folder}/errors"
    hang = ["--hang", "3"] if fault in HANGS else []
    command = [paceline, "record", "--pytorch", "--scheduler", "sums", *hang, "-o", folder + "/run", "--",
               python, LAUNCH, "--fork", "2", PROGRAM, way, fault, MILLISECONDS]
    with open(errors, "w") as file:
        job = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
    end = time.monotonic() + 400
    while job.poll() is None and time.monotonic() < end:
        time.sleep(0.2)
        if "hang? rank" in pathlib.Path(errors).read_text():
            time.sleep(2)
            break
    if job.poll() is None:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    return pathlib.Path(errors).read_text()


def judged_delay(report, printed, fault):
    run = report["runs"][0]
    truth = float(re.search("injected ([0-9.]+) ms", printed).group(1))
    slow = run["lateness"]["slow_ranks"]
    if not slow:
        return f"{truth:.1f} ms", "no rank", False
    late = slow[0]["late_ns"] / 1e6
    right = slow[0]["rank"] == 1 and slow[0].get("phase") in DELAYS[fault] and abs(late / truth - 1) <= 0.2
    return f"{truth:.1f} ms", f"rank {slow[0]['rank']}, {slow[0].get('phase')}, {late:.1f} ms ({late / truth - 1:+.0%})", right


def judged_hang(paceline, folder, fault, printed):
    text = output_of(paceline, "info", folder + "/run")
    said = re.findall(r"Rank \d+ (?:never entered|on ).*$", text, re.M)
    return "–", said[0] if said else "no hang", any(line.startswith("Rank 1 ") for line in said)


def main():
    paceline, python = map(os.path.abspath, sys.argv[1:3])
    wanted = sys.argv[3:] or WAYS
    right = count = 0
    print("| way | fault | injected | found | right |\n|---|---|---|---|---|", flush=True)
    for one in wanted:
        way, _, chosen = one.partition(":")
        for fault in [chosen] if chosen else (*DELAYS, *HANGS):
            with tempfile.TemporaryDirectory() as folder:
                printed = recorded(paceline, python, way, fault, folder)
                try:
                    if fault in DELAYS:
                        report = json.loads(output_of(paceline, "report", "--format", "json", folder + "/run"))
                        *found, is_right = judged_delay(report, printed, fault)
                    else:
                        *found, is_right = judged_hang(paceline, folder, fault, printed)
                except (AttributeError, KeyError, IndexError, ValueError) as error:
                    found, is_right = ["–", f"{type(error).__name__} {error}: {printed[-800:]}"], False
            right, count = right + is_right, count + 1
            print("|", " | ".join([way, fault, *found, "yes" if is_right else "**no**"]), "|", flush=True)
    print(f"\n{right} of {count} right")
    return 0 if right == count else 1


if __name__ == "__main__":
    sys.exit(main())
