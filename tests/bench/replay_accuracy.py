#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: replay_accuracy.py PACELINE TRAINER [--ranks 1,2,4] [--iterations N] [TRACE…]

Records the trainer with each communicator and updater, and compares the replay of each run with what was measured: the
median step, and the share of the steps that is waiting for the last rank. With TRACEs, replays these instead. "noise" is half
the 95 % interval of the measured median: where iterations vary much, no replay from other iterations can be expected to meet
that median. It is absent where the run is too short for it. Exit status 1 if the median over the runs of the step's error is
above 3 %, or a share is off by more than 5 points.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

COMMUNICATORS = ["mpi", "naive", "flat", "hierarchical", "two_dimensional", "ring", "halving_doubling", "three_phase"]
UPDATERS = ["main_rank", "overlap", "double_buffering", "parameter_server", "sharded", "local_sgd", "top_k", "power_sgd"]
TRAINING = ("--synthetic --image-size 32 --train-images 6400 --test-images 16 --model resnet18 --width 0.25 --batch-size 8 "
            "--threads 1 --eval-every 0").split()


def record(paceline, trainer, folder, ranks, iterations, options):
    run = folder / "-".join([str(ranks), *(word.strip("-") for word in options)])
    command = [paceline, "record", "-o", str(run), "--", trainer, *TRAINING, "--iterations", str(iterations), *options]
    if ranks > 1:
        command = ["mpirun", "--bind-to", "none", "-n", str(ranks), *command]
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
               OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl_vader_single_copy_mechanism="none")
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"replay_accuracy.py: {' '.join(command)}: status {done.returncode}: {done.stderr[-2000:]}")
    return run


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("paceline")
    parser.add_argument("trainer")
    parser.add_argument("traces", nargs="*", type=pathlib.Path)
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--iterations", type=int, default=60)
    arguments = parser.parse_intermixed_args()
    errors, waits = [], []
    with tempfile.TemporaryDirectory() as folder:
        def runs():
            yield from arguments.traces
            if arguments.traces:
                return
            for ranks in map(int, arguments.ranks.split(",")):
                variants = [["--communicator", name] for name in COMMUNICATORS]
                variants += [["--updater", name] for name in UPDATERS]
                for options in variants if ranks > 1 else [[]]:
                    yield record(arguments.paceline, arguments.trainer, pathlib.Path(folder), ranks, arguments.iterations,
                                 options)
        print(f"{'run':32} {'measured':>10} {'replayed':>10} {'error':>7} {'noise':>7} {'waiting':>8} {'replayed':>8}")
        for run in runs():
            # A change that changes nothing: its interval is that of the measured median.
            command = [arguments.paceline, "whatif", "--format", "json", "--batch", "1.0000001", str(run)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            interval = found["predictions"][0].get("ci95")
            noise = f"{(interval[1] - interval[0]) / 2 / found['step_s']:.1%}" if interval else "–"
            errors.append(found["replayed_s"] / found["step_s"] - 1)
            waits.append(found["replayed_waiting_share"] - found["waiting_share"])
            print(f"{run.name:32} {1e3 * found['step_s']:8.2f}ms {1e3 * found['replayed_s']:8.2f}ms {errors[-1]:+7.1%} "
                  f"{noise:>7} {found['waiting_share']:8.1%} {found['replayed_waiting_share']:8.1%}", flush=True)
    error, wait = statistics.median(map(abs, errors)), max(map(abs, waits))
    print(f"median error of the step {error:.1%}, largest error of the waiting {100 * wait:.1f} points")
    sys.exit(error > 0.03 or wait > 0.05)


if __name__ == "__main__":
    main()
