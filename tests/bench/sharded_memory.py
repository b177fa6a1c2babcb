#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: sharded_memory.py PACELINE-TRAIN [RANKS…] [-- OPTION…]

Memory of a rank with the sharded optimizer, and of a rank that computes a stage of a pipeline, beside that of a replica: the
peak resident set (VmHWM) of each rank over two iterations of ResNet-50, for momentum SGD and for AdamW, whose state is that
of Adam. Prints the largest rank's figure in MiB, and the saving of the sharded optimizer beside the one that its state makes
up. A pipeline has as many stages and microbatches as there are ranks; an iteration has the same images in all cases. Options
after -- are passed on, such as --model resnet152.
"""
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

from mpi_environment import MPI_ENVIRONMENT

STATES = {"sgd": 1, "adamw": 2}  # arrays as long as the weights
RUN = ["--synthetic", "--model", "resnet50", "--image-size", "32", "--train-images", "64",
       "--test-images", "4", "--iterations", "2", "--eval-every", "0", "--threads", "1"]
BATCH = 2  # images of a rank


def as_rank(folder, command):
    """Runs the command and stores the peak of its resident set, in KiB."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    name = os.environ.get("OMPI_COMM_WORLD_RANK", "0")
    (pathlib.Path(folder) / name).write_text(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))


def peaks(train, ranks, options):
    """The peak of each rank, in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["mpirun", "--bind-to", "none", "-n", str(ranks), sys.executable, __file__, "--as-rank", folder,
                        train, *RUN, *options], check=True, env=MPI_ENVIRONMENT)
        return [int(file.read_text()) / 1024 for file in sorted(pathlib.Path(folder).iterdir())]


def parameters(train, options):
    """The bytes of the weights, in MiB: the size of a checkpoint of momentum SGD is about that of two copies."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "checkpoint"
        subprocess.run([train, *RUN, "--batch-size", str(BATCH), *options, "--checkpoint", str(file)], check=True, stdout=subprocess.DEVNULL)
        return file.stat().st_size / 2 / 2**20


def main():
    arguments, more = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, more = arguments[:at], arguments[at + 1:]
    train, counts = arguments[0], [int(text) for text in arguments[1:]] or [2, 4]
    weights = parameters(train, more)
    print(f"weights: {weights:.0f} MiB")
    print(f"{'ranks':>5} {'optimizer':>9} {'replica':>9} {'sharded':>9} {'saved':>8} {'state saved':>12} {'stages':>9}")
    for ranks in counts:
        for optimizer, states in STATES.items():
            options = more + ["--optimizer", optimizer, "--communicator", "ring"]
            replicas = ["--batch-size", str(BATCH), *options]
            whole, sharded = (max(peaks(train, ranks, replicas + ["--updater", updater])) for updater in ("allreduce", "sharded"))
            stages = max(peaks(train, ranks, ["--batch-size", str(BATCH * ranks), *options, "--pipeline-stages", str(ranks),
                                              "--microbatches", str(ranks), "--pipeline-schedule", "1f1b", "--pipeline-split", "operations"]))
            print(f"{ranks:>5} {optimizer:>9} {whole:>9.0f} {sharded:>9.0f} {whole - sharded:>8.0f} "
                  f"{states * weights * (1 - 1 / ranks):>12.0f} {stages:>9.0f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as-rank"]:
        as_rank(sys.argv[2], sys.argv[3:])
    else:
        main()
