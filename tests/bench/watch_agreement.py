#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: watch_agreement.py PACELINE [--seconds 60] [--ranks 2]

Whether `paceline watch` agrees with `paceline query` on a live job: records a DistributedDataParallel job of PyTorch, asks
`watch --once --json` when it has run for SECONDS, and compares the phases that it shows with those of the same iterations
in the finished files. Runs with an interpreter that has torch. Exit status 1: some phase differs by
more than one point; 77: there is no torch.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

SHOWN = 64  # iterations, as in analysis/watch/live_steps.h
MOST_POINTS = 1.0
PHASES = ("startup", "preprocess", "forward", "backward", "optimizer", "communication", "evaluate", "checkpoint", "idle",
          "other")
SCRIPT = """
import sys, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
torch.manual_seed(0)
layers = [layer for _ in range(6) for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU())]
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
end = time.monotonic() + float(sys.argv[1])
more = torch.ones(1)
while more.item():
    loss = model(torch.randn(64, 512)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    more = torch.tensor([float(time.monotonic() < end)])
    dist.broadcast(more, 0)
dist.destroy_process_group()
"""


def output_of(*command):
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def first_frame(paceline, run, job):
    """Once the ranks have begun: on a busy machine it takes long to import torch."""
    while True:
        try:
            frame = output_of(paceline, "watch", "--once", "--json", run)
            if frame["iterations"]["count"] > 0:
                return frame
        except subprocess.CalledProcessError:
            pass
        if job.poll() is not None:
            sys.exit("the job ended before it was seen")
        time.sleep(0.5)


def shares_of_query(paceline, run, newest):
    """Of the last iterations up to this one, over all ranks."""
    columns = ", ".join(f"sum({phase}_ns) AS {phase}" for phase in PHASES)
    row = output_of(paceline, "query", "--format", "json", run, f"SELECT {columns} FROM iterations WHERE number <= {newest} "
                    f"AND number > {newest - SHOWN}")
    values = row[0] if isinstance(row, list) else row["rows"][0]
    values = dict(zip(PHASES, values)) if isinstance(values, list) else values
    return {phase: values[phase] / sum(values.values()) for phase in PHASES}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("paceline")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--ranks", type=int, default=2)
    arguments = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        print("skipped: no torch")
        sys.exit(77)
    launch = pathlib.Path(__file__).parents[1] / "integration/pytorch/launch.py"
    with tempfile.TemporaryDirectory(prefix="paceline-watch-agreement-") as directory:
        script, run = pathlib.Path(directory, "train.py"), os.path.join(directory, "run")
        script.write_text(SCRIPT, encoding="utf-8")
        job = subprocess.Popen([arguments.paceline, "record", "--pytorch", "-o", run, "--", sys.executable, launch,
                                str(arguments.ranks), script, str(arguments.seconds + 10)], start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(arguments.seconds)
            frame = first_frame(arguments.paceline, run, job)
            if job.wait(120) != 0:
                sys.exit("the job failed")
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
        expected = shares_of_query(arguments.paceline, run, frame["iterations"]["newest"])
    shown = frame["phase_shares"]
    worst = max(abs(100 * (shown.get(phase, 0) - expected[phase])) for phase in PHASES)
    for phase in PHASES:
        if expected[phase] or shown.get(phase, 0):
            print(f"{phase:15} watch {100 * shown.get(phase, 0):6.2f} %  query {100 * expected[phase]:6.2f} %")
    print(f"{frame['iterations']['count']} iterations of {len(frame['ranks'])} ranks; largest difference {worst:.2f} points")
    if frame["ended"] or worst > MOST_POINTS:
        sys.exit(1)


if __name__ == "__main__":
    main()
