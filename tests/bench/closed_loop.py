#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: closed_loop.py PACELINE TRAINER [--rounds N] [--iterations N] [--busy] [--json FILE] [CASE…]

Predicts the step time of a change from a run without it, makes the change in the trainer, and measures. For each case A
(without) and B (with) alternate; the step is the median over the rounds of each run's median after warm-up, the
prediction the median over the runs A. A case passes if B changes the step by at least 25 %, the prediction is off by at
most 10 % of the measured step and by at most a third of the measured change. --busy is for tests on busy machines: the only
limit is half of the measured change, so that "unchanged" is never a prediction that passes. Exit status: 0 all pass, 1 some fail, 77 a
case that was named needs network namespaces, which cannot be made here. Without names, such cases are left out.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
NODES = SOURCE / "samples" / "two_nodes" / "nodes.sh"
SMALL = "--model resnet18 --width 0.125 --batch-size 2"
LARGE = "--model resnet18 --width 0.25 --batch-size 96"
LONG_BACKWARD = "--model resnet18 --width 0.125 --batch-size 384 --communicator ring"
LOADER = SMALL + " --fault slow-loader=0:200"
RING = SMALL + " --communicator ring"

# name: (trainer's options of A, its options of B, rate of the network for A and B, options of whatif). Delays are sleeps,
# and a slow network leaves the cores free, so most cases do not depend on how busy the machine is. `batch` does, and
# `overlap` and `buckets` a little. The burst is small in these two, because pieces that pass in one burst would not show
# the rate. In `batch`, the images are so many that what a pass costs beside them matters little.
CASES = {
    # Without the delay of rank 1, the loader of rank 0 decides: the delay had hidden it.
    "slow-rank": (LOADER + " --fault slow-rank=1:400", LOADER, None, None, "--relieve 1"),
    "fp16": (RING, RING + " --allreduce-dtype f16", "20mbit", "20mbit", "--fp16"),
    "slower-network": (RING, RING, "40mbit", "20mbit", "--bandwidth 0.5"),
    "double-buffering": (RING + " --fault slow-rank=0:150", RING + " --fault slow-rank=0:150 --updater double_buffering",
                         "40mbit", "40mbit", "--double-buffering"),
    # The transfers take about as long as backward. The step is so long that they need little CPU time, and that it does
    # not matter when helper threads get a core some ms late.
    "overlap": (LONG_BACKWARD, LONG_BACKWARD + " --updater overlap --bucket-mb 0.3", "20mbit --burst 32kb",
                "20mbit --burst 32kb", "--overlap --bucket-mb 0.3"),
    # One bucket has the whole gradient, so that it is sent after backward.
    "buckets": (LONG_BACKWARD + " --updater overlap --bucket-mb 1", LONG_BACKWARD + " --updater overlap --bucket-mb 0.3",
                "20mbit --burst 32kb", "20mbit --burst 32kb", "--bucket-mb 0.3"),
    "batch": (LARGE, LARGE + " --batch-size 192", None, None, "--batch 2"),
}
LEAST_CHANGE, MOST_ERROR, MOST_PART, BUSY_PART = 0.25, 0.10, 1 / 3, 1 / 2


def options_once(text):
    """Of an option that is given twice, the last one counts. Faults add up."""
    words, out = text.split(), {}
    for name, value in zip(words[::2], words[1::2]):
        out[name] = out.get(name, []) + [value] if name == "--fault" else [value]
    return [word for name, values in out.items() for word in [name, *values]]


class Loop:
    def __init__(self, paceline, trainer, iterations, busy, folder):
        self.paceline, self.trainer, self.busy = paceline, trainer, busy
        self.iterations, self.folder = iterations, folder
        self.env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                        OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl_vader_single_copy_mechanism="none")
        self.env.setdefault("OMPI_MCA_plm_rsh_agent", "")
        if busy:  # a rank that polls while it waits would use up its share of a busy core, and be late afterwards
            self.env["OMPI_MCA_mpi_yield_when_idle"] = "1"

    def record(self, name, options, rate):
        run = self.folder / name
        command = ["mpirun", "--bind-to", "none", "-n", "2"]
        if rate:
            command = [str(NODES), "--rate", *rate.split(), *command, "--map-by", "node"]
        command += [self.paceline, "record", "-o", str(run), "--", self.trainer, "--synthetic", "--image-size", "32",
                    "--train-images", "6400", "--test-images", "4", "--threads", "1", "--eval-every", "0",
                    "--iterations", str(self.iterations), *options_once(options)]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True)
        if done.returncode == 77:
            return None
        if done.returncode != 0:
            sys.exit(f"closed_loop.py: {' '.join(command)}: status {done.returncode}: {done.stderr[-2000:]}")
        return run

    def json_of(self, *arguments):
        return json.loads(subprocess.run([self.paceline, *arguments, "--format", "json"], check=True,
                                         capture_output=True, text=True).stdout)

    def step(self, run):
        return self.json_of("whatif", str(run))["step_s"]

    def predicted(self, run, options):
        return self.json_of("whatif", str(run), *options.split())["predictions"][0]["step_s"]

    def case(self, name, rounds):
        without, with_it, rate, other_rate, change = CASES[name]
        a, b, predictions = [], [], []
        for round_number in range(rounds):
            before = self.record(f"{name}-a{round_number}", without, rate)
            after = self.record(f"{name}-b{round_number}", with_it, other_rate)
            if before is None or after is None:
                return None
            a.append(self.step(before))
            b.append(self.step(after))
            predictions.append(self.predicted(before, change))
        base, measured, predicted = (statistics.median(values) for values in (a, b, predictions))
        error, moved = abs(predicted - measured), abs(measured - base)
        return {"case": name, "without_s": base, "predicted_s": predicted, "measured_s": measured,
                "change": measured / base - 1, "error_of_step": error / measured,
                "error_of_change": error / moved if moved else float("inf"),
                "passed": error <= BUSY_PART * moved if self.busy else (
                    moved >= LEAST_CHANGE * base and error <= min(MOST_PART * moved, MOST_ERROR * measured))}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("paceline")
    parser.add_argument("trainer")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--json")
    arguments = parser.parse_intermixed_args()
    unknown = set(arguments.cases) - set(CASES)
    if unknown:
        sys.exit(f"closed_loop.py: no case {', '.join(sorted(unknown))}; known: {', '.join(CASES)}")
    results, skipped = [], False
    print(f"{'case':18} {'without':>9} {'predicted':>9} {'measured':>9} {'change':>8} {'error':>7} {'of change':>9}")
    with tempfile.TemporaryDirectory() as folder:
        loop = Loop(arguments.paceline, arguments.trainer, arguments.iterations, arguments.busy, pathlib.Path(folder))
        for name in arguments.cases or CASES:
            found = loop.case(name, arguments.rounds)
            if found is None:
                print(f"{name:18} skipped: no network namespaces here")
                skipped = True
                continue
            results.append(found)
            print(f"{name:18} {1e3 * found['without_s']:7.1f}ms {1e3 * found['predicted_s']:7.1f}ms "
                  f"{1e3 * found['measured_s']:7.1f}ms {found['change']:+8.1%} {found['error_of_step']:7.1%} "
                  f"{found['error_of_change']:9.1%} {'' if found['passed'] else 'FAILED'}", flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(results, indent=2) + "\n")
    if not all(found["passed"] for found in results):
        sys.exit(1)
    sys.exit(77 if skipped and arguments.cases else 0)


if __name__ == "__main__":
    main()
