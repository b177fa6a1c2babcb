#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what large-batch techniques do to test accuracy, on the data set that paceline-train draws.

Each technique is a training run on two ranks, repeated with several seeds, and compared with the run that lacks it. A
run's figure is the median test accuracy of its last 5 epochs, as Goyal et al. (arXiv 1706.02677) take it; the table has
mean and standard deviation over the seeds. The p of a comparison is the share of all ways to deal the figures of both
runs into two groups that give means at least as far apart (exact permutation test, two-sided). As there are several
comparisons, an effect is called seen where p is below 5 % after Holm's correction for all of them (Scandinavian Journal
of Statistics 6, 1979).

Every finished run leaves a file in OUTPUT/results. When the script is started again, it skips the finished runs. With the
table, the accuracy of every epoch of every run is written to OUTPUT/results.csv, and the options of the runs to
OUTPUT/runs.csv.
"""
import argparse
import csv
import dataclasses
import itertools
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

LAST_EPOCHS = 5
CHANCE = 0.1  # accuracy of ten classes by guessing: that of a run whose loss left the finite numbers
SEEN_BELOW = 0.05
FEWEST_SEEDS = 6  # with 5 and 5 figures the least p is 2 / 252, and nine times that is above 0.05


@dataclasses.dataclass(frozen=True)
class Size:
    """How large the experiment is. Ranks share `batch`, the small global batch; the large one is `factor` times it."""
    width: float
    train_images: int
    test_images: int
    epochs: int
    batch: int
    factor: int
    lr_steps: str  # epochs at which the rate falls, or the batch grows; before the last 5
    warmup_epochs: float


SIZES = {
    "usual": Size(0.25, 1024, 1000, 14, 32, 8, "7,9", 4),
    "tiny": Size(0.125, 64, 16, 6, 8, 4, "1", 1),  # for the tests: what it prints means nothing
}
RANKS = 2


@dataclasses.dataclass(frozen=True)
class Comparison:
    technique: str
    run: str
    reference: str
    paper: str  # what the technique's source says of the same comparison


COMPARISONS = [
    Comparison("large batch, linear scaling, no warm-up", "large", "small", "worse (Goyal, table 1)"),
    Comparison("constant warm-up", "constant_warmup", "large", "worse (Goyal, table 1)"),
    Comparison("gradual warm-up", "gradual_warmup", "large", "better (Goyal, table 1)"),
    Comparison("large batch with gradual warm-up", "gradual_warmup", "small", "no loss (Goyal, table 1)"),
    Comparison("LARS", "lars", "same_without_lars", "better at batches where warm-up fails (You, 5)"),
    Comparison("ghost batch norm", "gradual_warmup", "whole_batch_norm", "better (Hoffer, table 1)"),
    Comparison("a batch that grows", "growing_batch", "small", "no loss (Smith, 5)"),
    Comparison("double buffering", "double_buffering", "small", "no loss (ChainerMN)"),
    Comparison("fp16 allreduce", "fp16_allreduce", "small", "no loss (ChainerMN)"),
]


def options_of(size):
    """The options of each run, beside data, threads, seed and log."""
    growth = 4
    common = {"model": "resnet18", "width": size.width, "epochs": size.epochs, "optimizer": "sgd", "momentum": 0.9,
              "nesterov": True, "weight-decay": 5e-4, "lr": 0.05, "lr-scaling": "linear", "base-batch": size.batch,
              "schedule": "step", "lr-steps": size.lr_steps, "lr-factor": 1 / growth, "warmup": "none", "eval-every": 1,
              "batch-size": size.batch // RANKS}
    # The paper's workers keep their own batch, and its statistics, however many they are: slices of that size.
    large = {"batch-size": size.batch * size.factor // RANKS, "ghost-batch": size.batch // RANKS}
    gradual = {"warmup": "gradual", "warmup-epochs": size.warmup_epochs}
    # What LARS's authors train with beside it. Its opponent has all of that too, so that only the layers' own rates are
    # different.
    beside_lars = {"nesterov": False, "schedule": "poly", "poly-power": 2, "decay-exclude": "batch_norm,bias",
                   "lr-steps": None, "lr-factor": None}
    return {
        "small": common,
        "large": common | large,
        "constant_warmup": common | large | {"warmup": "constant", "warmup-epochs": size.warmup_epochs},
        "gradual_warmup": common | large | gradual,
        "same_without_lars": common | large | gradual | beside_lars,
        "lars": common | large | gradual | beside_lars | {"optimizer": "lars", "lars-trust": 0.02},
        "whole_batch_norm": common | large | gradual | {"ghost-batch": 0},
        "growing_batch": common | {"grow-batch": growth},
        "double_buffering": common | {"updater": "double_buffering"},
        "fp16_allreduce": common | {"allreduce-dtype": "f16"},
    }


def as_arguments(options):
    arguments = []
    for name, value in options.items():
        if value is True:
            arguments.append(f"--{name}")
        elif value is not None and value is not False:
            arguments.append(f"--{name}={value}")
    return arguments


def environment():
    """Open MPI in containers, as root, with more ranks than cores, or on a busy machine."""
    own = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
           "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_plm_rsh_agent": "",
           "OMPI_MCA_mpi_yield_when_idle": "1", "OMP_NUM_THREADS": "1"}
    return own | dict(os.environ)


def fail(message):
    sys.exit(f"effects.py: {message}")


class Experiment:
    def __init__(self, output, size, program):
        self.output, self.size, self.program = output, size, program
        self.options = options_of(size)
        self.results = output / "results"
        self.results.mkdir(parents=True, exist_ok=True)
        self.data = output / f"data-{size.train_images}-{size.test_images}"

    def make_data(self):
        if (self.data / "test_batch.bin").exists():
            return
        shutil.rmtree(self.data, ignore_errors=True)  # what an interrupted run left
        subprocess.run([self.program, "make-dataset", self.data, "--train", str(self.size.train_images), "--test",
                        str(self.size.test_images), "--seed", "1"], check=True, stdout=subprocess.DEVNULL)

    def file_of(self, name, seed):
        return self.results / f"{name}-seed{seed}.json"

    def result(self, name, seed):
        """The finished run's result, or None where there is none yet, or one of other settings."""
        try:
            result = json.loads(self.file_of(name, seed).read_text())
        except FileNotFoundError:
            return None
        except ValueError:
            fail(f"{self.file_of(name, seed)}: no result of a run: delete it, and it is run again")
        return result if result.get("settings") == self.settings(name, seed) else None

    def settings(self, name, seed):
        return {"arguments": as_arguments(self.options[name]), "seed": seed, "ranks": RANKS, "data": self.data.name}

    def run(self, name, seed):
        """Trains, and leaves the result's file."""
        log = self.results / f"{name}-seed{seed}.jsonl"
        settings = self.settings(name, seed)
        command = ["mpirun", "--bind-to", "none", "-n", str(RANKS), self.program, *settings["arguments"], "--seed", str(seed),
                   "--data", str(self.data), "--threads", "1", "--log", str(log)]
        start = time.monotonic()
        done = subprocess.run(command, env=environment(), capture_output=True, text=True)
        diverged = done.returncode != 0 and "no longer a finite number" in done.stderr
        if done.returncode != 0 and not diverged:
            fail(f"{name} with seed {seed} ended with status {done.returncode}: {done.stderr.strip()[:2000]}\n"
                 f"command: {' '.join(command)}")
        epochs = [line["test_accuracy"] for line in map(json.loads, log.read_text().splitlines())
                  if line["event"] == "epoch"]
        if not diverged and len(epochs) < LAST_EPOCHS:
            fail(f"{log}: {len(epochs)} evaluations, not {LAST_EPOCHS} at least")
        result = {"settings": settings, "test_accuracies": epochs, "diverged": diverged,
                  "accuracy": CHANCE if diverged else statistics.median(epochs[-LAST_EPOCHS:]),
                  "seconds": time.monotonic() - start}
        part = self.file_of(name, seed).with_suffix(".part")
        part.write_text(json.dumps(result))
        os.replace(part, self.file_of(name, seed))
        return result

    def run_all(self, names, seeds):
        """All runs of one seed before the next, so that whoever stops early has whole seeds."""
        missing = [(name, seed) for seed in seeds for name in names if self.result(name, seed) is None]
        done = len(names) * len(seeds) - len(missing)
        if done:
            print(f"{done} of {done + len(missing)} runs are there already")
        if missing:
            self.make_data()
        took = []
        for number, (name, seed) in enumerate(missing, 1):
            result = self.run(name, seed)
            took.append(result["seconds"])
            left = statistics.mean(took) * (len(missing) - number)
            said = "diverged" if result["diverged"] else f"{100 * result['accuracy']:.1f} %"
            print(f"[{done + number}/{done + len(missing)}] {name}, seed {seed}: {said} in {took[-1]:.0f} s, "
                  f"{left / 60:.0f} min left", flush=True)


def permutation_p(one, other):
    """Share of all ways to deal the figures into two groups of these sizes whose means are at least as far apart."""
    together = one + other
    observed = abs(statistics.fmean(one) - statistics.fmean(other))
    total, far = sum(together), 0
    ways = list(itertools.combinations(together, len(one)))
    for group in ways:
        rest = (total - sum(group)) / len(other)
        far += abs(sum(group) / len(one) - rest) >= observed - 1e-12
    return far / len(ways)


def holm(ps, comparisons):
    """Holm's correction of `ps` for `comparisons` comparisons. A comparison without a p counts as one with a larger p."""
    corrected, least = [0.0] * len(ps), 0.0
    for place, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        least = max(least, min(1.0, ps[index] * (comparisons - place)))
        corrected[index] = least
    return corrected


def verdict(one, other, p, corrected):
    if min(len(one), len(other)) < FEWEST_SEEDS:
        return "too few seeds"
    figures = f"(p = {p:.3f}, corrected {corrected:.3f})"
    if corrected >= SEEN_BELOW:
        return f"not seen {figures}"
    return f"seen: {'better' if statistics.fmean(one) > statistics.fmean(other) else 'worse'} {figures}"


def in_percent(values):
    deviation = f" ± {100 * statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{100 * statistics.fmean(values):.2f}{deviation}"


def table(experiment, names, seeds):
    """Rows of comparisons of which both runs are there."""
    rows = [["technique", "accuracy in %", "without", "accuracy in %", "effect", "the paper's"]]
    compared = []
    for c in COMPARISONS:
        results = [[experiment.result(name, seed) for seed in seeds] for name in (c.run, c.reference)]
        if c.run not in names or c.reference not in names or None in results[0] + results[1]:
            continue
        one, other = ([result["accuracy"] for result in of_run] for of_run in results)
        cells = [in_percent(values) for values in (one, other)]
        for place, of_run in enumerate(results):
            diverged = sum(result["diverged"] for result in of_run)
            if diverged:
                cells[place] += f" ({diverged} diverged)"
        compared.append((c, cells, one, other, permutation_p(one, other)))
    corrected = holm([p for *_, p in compared], len(COMPARISONS))
    for (c, cells, one, other, p), of_all in zip(compared, corrected):
        rows.append([c.technique, cells[0], c.reference, cells[1], verdict(one, other, p, of_all), c.paper])
    return rows


def write_rows(file, header, rows):
    with open(file, "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_results(experiment, names, seeds):
    """Every figure that the table rests on, and the options of each run."""
    epochs, runs = [], []
    for name in names:
        for seed in seeds:
            result = experiment.result(name, seed)
            if result is None:
                continue
            diverged = int(result["diverged"])
            runs.append([name, seed, diverged, " ".join(result["settings"]["arguments"])])
            epochs += [[name, seed, epoch, accuracy] for epoch, accuracy in enumerate(result["test_accuracies"], 1)]
    write_rows(experiment.output / "runs.csv", ["run", "seed", "diverged", "options"], runs)
    write_rows(experiment.output / "results.csv", ["run", "seed", "epoch", "test_accuracy"], epochs)
    return experiment.output / "results.csv"


def print_table(rows, experiment, seeds):
    size = experiment.size
    print(f"\nResNet-18 of width {size.width}, {size.train_images} training and {size.test_images} test images, "
          f"{size.epochs} epochs, {RANKS} ranks; batch {size.batch}, large {size.batch * size.factor}; "
          f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}.\n"
          f"Test accuracy: median of the last {LAST_EPOCHS} epochs, mean ± standard deviation over seeds.\n")
    rows = [rows[0], ["---"] * len(rows[0])] + rows[1:]  # Markdown
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")


def parse(arguments):
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=root / "out/effects", help="default: %(default)s")
    parser.add_argument("--size", choices=SIZES, default="usual", help="default: %(default)s")
    parser.add_argument("--seeds", type=int, default=6, help="1 to this number; default: %(default)s")
    parser.add_argument("--only", default="",
                        help="runs, separated by commas: " + ", ".join(options_of(SIZES["usual"])))
    parser.add_argument("--table", action="store_true", help="run nothing; the table of what is there")
    parser.add_argument("--train", default=str(root / "build/release/bin/paceline-train"),
                        help="program; default: %(default)s")
    options = parser.parse_args(arguments)
    if not 1 <= options.seeds <= 10:
        parser.error("--seeds: 1 to 10")
    if not pathlib.Path(options.train).is_file():
        parser.error(f"--train: there is no {options.train}: build it (samples/quickstart.sh), or name another")
    return options


def main(arguments):
    options = parse(arguments)
    experiment = Experiment(options.output.resolve(), SIZES[options.size], options.train)
    names = options.only.split(",") if options.only else list(experiment.options)
    for name in names:
        if name not in experiment.options:
            fail(f"--only: no run '{name}'; there are {', '.join(experiment.options)}")
    seeds = list(range(1, options.seeds + 1))
    if not options.table:
        experiment.run_all(names, seeds)
    rows = table(experiment, names, seeds)
    if len(rows) == 1:
        print("There is no technique of which its own run and the run without it are there for all seeds.")
        return 0
    print_table(rows, experiment, seeds)
    print(f"\nResults of the runs: {experiment.results}; of all epochs: {write_results(experiment, names, seeds)}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        fail("stopped; started again it goes on after the last finished run")
