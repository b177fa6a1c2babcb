#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the predictions of `paceline whatif` on generated jobs whose truth is known, from .pace files.

usage: judge_whatif.py PACELINE [--runs 50] [--ranks 2,4,8] [--iterations 200] [--seed 1]

The jobs are those of judge_reports.py. Three questions are asked of each kind of noise: what does a step take if the
last rank, which is as fast as the others, becomes no slower than they are (truth: what it takes now); what if that rank
is slow by 30 % in every third step; and what if there are twice the ranks. The truth is the mean step of 20,000
iterations of the changed job; of an interval that is that of the change, in the conditions of the run, it is the mean step of the run
times what 20,000 iterations of both jobs are to each other. Prints the mean error of the prediction in % of the step, and how many of the intervals
hold the truth. The exit status is 1 if intervals of a kind hold the truth in less than 93 % and three standard errors.
"""
import argparse
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

import judge_reports as jobs

KINDS = ["equal", "normal", "AR(1)", "periodic", "bursty", "t3", "lognormal", "exponential", "host-shared"]


def rows_of(kind, question, ranks, iterations, draw):
    rows = jobs.work_of(kind, ranks, iterations, draw)
    if question == "every third":
        third = draw.randrange(3)
        for i, row in enumerate(rows):
            row[-1] += 3e7 * (i % 3 == third)
    return rows


def mean_step_ms(rows):
    """The last arrival, the transfer and what follows."""
    return sum(map(max, rows)) / len(rows) / 1e6 + 1.0045


def truth_ms(kind, question, ranks, draw):
    """The mean step of the changed job."""
    return mean_step_ms(jobs.work_of(kind, 2 * ranks if question == "twice the ranks" else ranks, 20_000, draw))


def predicted(paceline, rows, ranks, question, draw):
    with tempfile.TemporaryDirectory() as temporary:
        jobs.write_job(pathlib.Path(temporary), "", rows, draw)
        change = ["--ranks", str(2 * ranks)] if question == "twice the ranks" else ["--relieve", str(ranks - 1)]
        done = subprocess.run([paceline, "whatif", *change, "--format", "json", temporary], capture_output=True, text=True,
                              check=False)
    if done.returncode != 0:
        sys.exit(f"judge_whatif.py: paceline whatif failed: {done.stderr}")
    found = json.loads(done.stdout)
    return dict(found["predictions"][0], measured_ms=1e3 * found["step_s"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paceline")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--kind")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    good = True
    print(f"{'question':16} {'kind':14} ranks   truth   error of the step   intervals that hold the truth")
    for question in ["sound rank", "every third", "twice the ranks"]:
        for kind in [options.kind] if options.kind else KINDS:
            for ranks in map(int, options.ranks.split(",")):
                draw = random.Random(f"{options.seed} {question} {kind} {ranks}")
                random.seed(f"{options.seed} {question} {kind} {ranks}")
                truth = truth_ms(kind, question, ranks, draw)
                before = mean_step_ms(rows_of(kind, question, ranks, 20_000, draw))
                shown = held = 0
                errors = []
                for _ in range(options.runs):
                    rows = rows_of(kind, question, ranks, options.iterations, draw)
                    found = predicted(options.paceline, rows, ranks, question, draw)
                    errors.append(1e3 * found["step_s"] / truth - 1)
                    if "ci95" in found:
                        shown += 1
                        of_change = found.get("ci95_of_change", False)
                        there = found["measured_ms"] * truth / before if of_change else truth
                        held += found["ci95"][0] <= there / 1e3 <= found["ci95"][1]
                spread = math.sqrt(0.93 * 0.07 / max(shown, 1))
                fine = held >= (0.93 - 3 * spread) * shown
                good = good and fine
                print(f"{question:16} {kind:14} {ranks:5} {truth:7.1f}   {100 * sum(errors) / len(errors):+6.2f} %            "
                      f"{held} of {shown}{'' if fine else '   LIMIT BROKEN'}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
