#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: events_per_step.py PACELINE [PYTHON]

Prints how many ranges the hooks for PyTorch record in a training step, and how many bytes of the trace file they take, for
a plain loop and for DistributedDataParallel on two ranks. Each loop runs with two numbers of steps: the difference
leaves out what a process records once. Runs by hand, and does not measure time.
"""
import csv
import os
import pathlib
import subprocess
import sys
import tempfile

STEPS = 50, 350
LAUNCH = str(pathlib.Path(__file__).resolve().parent / "launch.py")
LOOP = """
import sys
import torch
from torch.utils.data import DataLoader, TensorDataset

steps, parallel = int(sys.argv[1]), sys.argv[2] == "parallel"
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10))
if parallel:
    torch.distributed.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loss_of = torch.nn.CrossEntropyLoss()
for image, label in DataLoader(TensorDataset(torch.randn(4 * steps, 16), torch.zeros(4 * steps, dtype=torch.long)), 4):
    optimizer.zero_grad()
    loss_of(model(image), label).backward()
    optimizer.step()
if parallel:
    torch.distributed.destroy_process_group()
"""


def recorded(paceline, python, steps, parallel):
    """The ranges of rank 0 by name, and the bytes of its file."""
    with tempfile.TemporaryDirectory() as folder:
        def run(*command):
            environment = dict(os.environ, OMP_NUM_THREADS="1")
            subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)

        pathlib.Path(folder, "loop.py").write_text(LOOP)
        launch = [python, LAUNCH, "2"] if parallel else [python]
        run(paceline, "record", "--pytorch", "--counters", "0", "-o", "run", "--", *launch, "loop.py", str(steps),
            "parallel" if parallel else "plain")
        (file,) = pathlib.Path(folder, "run").glob("*-r0-*.pace" if parallel else "*.pace")
        run(paceline, "export", "--to", "csv", "-o", "run.csv", "run")
        ranges = {}
        with open(pathlib.Path(folder, "run.csv"), newline="") as rows:
            for row in csv.DictReader(rows):
                if row["rank"] == "0" and row["kind"] not in ("counter", "mark"):
                    ranges[row["name"]] = ranges.get(row["name"], 0) + 1
        return ranges, file.stat().st_size


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    paceline, python = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) == 3 else sys.executable
    few, many = STEPS
    print("| loop | ranges per step | bytes per step | ranges |\n|---|---|---|---|", flush=True)
    for name, parallel in (("plain", False), ("DistributedDataParallel", True)):
        (ranges, size), (more_ranges, more_size) = (recorded(paceline, python, steps, parallel) for steps in STEPS)
        each = {of: (count - ranges.get(of, 0)) / (many - few) for of, count in more_ranges.items()}
        each = {of: count for of, count in each.items() if round(count, 1) > 0}
        text = ", ".join(of if round(count, 1) == 1 else f"{of} × {count:.3g}" for of, count in each.items())
        print(f"| {name} | {sum(each.values()):.1f} | {(more_size - size) / (many - few):.0f} | {text} |", flush=True)


if __name__ == "__main__":
    main()
