#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: compressed_gradients.py PACELINE-TRAIN [--rate 1gbit] [--model vgg11_bn] [--batch-size 8] [--iterations 12]
                               [--rounds 3] [--seeds 0] [--epochs 8] [--updaters allreduce,top_k,power_sgd]

What compressed gradients save between two nodes with a slow network: two network namespaces of this machine with one rank
each (samples/two_nodes/nodes.sh; needs root). In each round every updater trains without and with a limit of the rate. For each
updater it prints the medians over the rounds of the median step without the limit and of the one at the rate, the speed-up over the first updater, the one that is predicted from the steps without a limit and
the bytes that a rank sends at the rate, and by how much the two differ. With --seeds N it also trains a narrow ResNet-18
with each updater and N seeds on two ranks of this machine, and prints mean and standard deviation of the accuracy.
"""
import argparse
import collections
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from mpi_environment import MPI_ENVIRONMENT

NODES = pathlib.Path(__file__).resolve().parents[2] / "samples/two_nodes/nodes.sh"
UPDATERS = {
    "allreduce": ["--communicator", "ring"],
    "top_k": ["--updater", "top_k", "--top-k-share", "0.01"],
    "power_sgd": ["--updater", "power_sgd", "--power-sgd-rank", "4", "--communicator", "ring"],
}
TASK = ["--model", "resnet18", "--width", "0.125", "--batch-size", "16", "--lr", "0.02", "--eval-every", "0", "--threads", "1"]


def bits_per_second(rate):
    units = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
    for unit, factor in units.items():
        if rate.endswith(unit):
            return float(rate[:-len(unit)]) * factor
    sys.exit(f"--rate {rate}: write it like 1gbit")


def log_of(command):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "log"
        done = subprocess.run([*command, "--log", str(file)], env=MPI_ENVIRONMENT, stdout=subprocess.DEVNULL)
        if done.returncode == 77:
            sys.exit(77)  # no namespaces here
        done.check_returncode()
        return [json.loads(line) for line in file.read_text().splitlines()]


def median_step(command):
    seconds = [line["seconds"] for line in log_of(command) if line["event"] == "iteration"]
    return statistics.median(seconds[len(seconds) // 4:])


def shapes_of(train, options):
    """The shapes of the network's parameters, from a checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "checkpoint"
        subprocess.run([train, *options, "--batch-size", "1", "--iterations", "1", "--train-images", "1", "--checkpoint",
                        str(file)], check=True, stdout=subprocess.DEVNULL)
        content = file.read_bytes()
    begin = content.index(b"\n") + 9
    length = int.from_bytes(content[begin - 8:begin], "little")
    return [parameter["shape"] for parameter in json.loads(content[begin:begin + length])["parameters"]]


def bytes_sent(updater, shapes):
    """By one of two ranks in an iteration. A ring of two sends the gradient once."""
    total = 0
    for shape in shapes:
        rows, columns = shape[0], 1
        for extent in shape[1:]:
            columns *= extent
        values = rows * columns
        if updater == "top_k":
            total += 8 * 0.01 * values
        elif updater == "power_sgd" and columns > 1:
            total += 4 * min(4, rows, columns) * (rows + columns)
        else:
            total += 4 * values
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("train")
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--model", default="vgg11_bn")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--iterations", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--updaters", default=",".join(UPDATERS))
    o = parser.parse_args()
    updaters = {name: UPDATERS[name] for name in o.updaters.split(",")}
    run = ["--model", o.model, "--synthetic", "--image-size", "32", "--test-images", "4", "--lr", "0.001", "--schedule",
           "constant", "--eval-every", "0", "--threads", "1"]
    shapes = shapes_of(o.train, run)
    steps = collections.defaultdict(list)
    for _ in range(o.rounds):
        for updater, options in updaters.items():
            options = [*run, "--batch-size", str(o.batch_size), *options, "--train-images",
                       str(2 * o.batch_size * o.iterations), "--iterations", str(o.iterations)]
            for rate in ["unlimited", o.rate]:
                steps[updater, rate].append(median_step([str(NODES), "--rate", rate, "mpirun", "--bind-to", "none", "--map-by",
                                                         "node", "-n", "2", o.train, *options]))
    step = {key: statistics.median(of) for key, of in steps.items()}
    print(f"{o.model}, batch {o.batch_size} a rank, {o.rate} between two nodes of one rank each")
    print(f"{'updater':>10} {'MB sent':>8} {'unlimited':>10} {'at rate':>9} {'speed-up':>9} {'predicted':>10} {'off by':>8}")
    predicted = {}
    for updater in updaters:
        sent = bytes_sent(updater, shapes)
        predicted[updater] = step[updater, "unlimited"] + 8 * sent / bits_per_second(o.rate)
        first = next(iter(updaters))
        gain, expected = step[first, o.rate] / step[updater, o.rate], predicted[first] / predicted[updater]
        print(f"{updater:>10} {sent / 1e6:>8.2f} {step[updater, 'unlimited'] * 1e3:>7.0f} ms "
              f"{step[updater, o.rate] * 1e3:>6.0f} ms {gain:>9.2f} {expected:>10.2f} {expected / gain - 1:>+8.1%}", flush=True)
    if o.seeds == 0:
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([o.train, "make-dataset", folder, "--train", "1024", "--test", "512"], check=True, stdout=subprocess.DEVNULL)
        task = [*TASK, "--epochs", str(o.epochs)]
        for updater, options in updaters.items():
            accuracies = []
            for seed in range(1, o.seeds + 1):
                log = log_of(["mpirun", "--bind-to", "none", "-n", "2", o.train, "--data", folder, *task, *options, "--seed",
                              str(seed)])
                accuracies.append(100 * log[-1]["test_accuracy"])
            spread = statistics.stdev(accuracies) if o.seeds > 1 else 0
            print(f"{updater:>10}: accuracy {statistics.mean(accuracies):.1f} % ± {spread:.1f} over {o.seeds} seeds", flush=True)


if __name__ == "__main__":
    main()
