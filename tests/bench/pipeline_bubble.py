#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: pipeline_bubble.py PACELINE PACELINE-TRAIN [--stages 2,4] [--microbatches 1,2,4,8] [--schedules gpipe,1f1b]
                          [--delay 3200] [--iterations 6] [-- OPTION…]

Records pipelines with one thread for each stage, and compares the bubble that the report measures with the one that it
predicts from the stages' times, and steps that `paceline whatif` predicts for other microbatches, stages and splits with
measured ones. Layers sleep (--fault slow-layers, --delay milliseconds for all of them in an iteration), so the stages need
no cores and the result does not depend on their number. --delay 0 computes instead, on one core for each stage.

Fails where a bubble differs from the prediction by more than 5 % of it, where a predicted step is wrong by more than 10 %,
or where the report does not name the longest stage. Options after -- go to the trainer, such as --model vgg16_bn.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from mpi_environment import MPI_ENVIRONMENT

RUN = ["--synthetic", "--image-size", "16", "--width", "0.125", "--batch-size", "32", "--test-images", "4", "--eval-every",
       "0", "--threads", "1", "--lr", "0.001", "--schedule", "constant", "--freeze-batch-norm"]
# Splits of a ResNet-18 whose stages differ in length, and the longest stage by its multiply-adds.
SPLITS = {2: ("layer2.1", 1), 4: ("layer1.1,layer3,layer4", 1)}
BUBBLE_LIMIT, STEP_LIMIT = 0.05, 0.10


def record(o, folder, stages, microbatches, schedule, split, more):
    run = str(pathlib.Path(folder) / f"{stages}-{microbatches}-{schedule}-{split}")
    fault = ["--fault", f"slow-layers={o.delay}"] if o.delay > 0 else []
    subprocess.run([o.paceline, "record", "-o", run, "mpirun", "--bind-to", "none", "-n", str(stages), o.train, *RUN,
                    "--iterations", str(o.iterations), "--train-images", str(32 * o.iterations), "--pipeline-stages",
                    str(stages), "--microbatches", str(microbatches), "--pipeline-schedule", schedule, "--pipeline-split",
                    split, *fault, *more], check=True, env=MPI_ENVIRONMENT, stdout=subprocess.DEVNULL)
    return run


def json_of(*command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


class Checks:
    def __init__(self):
        self.failed = 0

    def mark(self, right):
        self.failed += not right
        return "" if right else "  WRONG"


def predicted_step(o, run, *changes):
    prediction = json_of(o.paceline, "whatif", run, *changes, "--format", "json")["predictions"][0]
    return prediction["step_s"], prediction["change"]


def compare_steps(o, checks, text, run, changes, measured):
    step, _ = predicted_step(o, run, *changes)
    error = step / measured - 1
    print(f"  {text}: {step * 1e3:.0f} ms, measured {measured * 1e3:.0f} ms ({error:+.1%})"
          f"{checks.mark(abs(error) <= STEP_LIMIT)}", flush=True)


def main():
    arguments, more = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, more = arguments[:at], arguments[at + 1:]
    parser = argparse.ArgumentParser()
    parser.add_argument("paceline")
    parser.add_argument("train")
    parser.add_argument("--stages", default="2,4")
    parser.add_argument("--microbatches", default="1,2,4,8")
    parser.add_argument("--schedules", default="gpipe,1f1b")
    parser.add_argument("--delay", type=int, default=3200)
    parser.add_argument("--iterations", type=int, default=6)
    o = parser.parse_args(arguments)
    checks = Checks()
    all_stages = [int(text) for text in o.stages.split(",")]
    all_microbatches = [int(text) for text in o.microbatches.split(",")]
    for schedule in o.schedules.split(","):
        runs, steps = {}, {}
        with tempfile.TemporaryDirectory() as folder:
            print(f"{schedule}\n{'stages':>6} {'microbatches':>12} {'step':>8} {'bubble':>7} {'predicted':>9} "
                  f"{'difference':>10} {'equal stages':>12} {'longest stage':>13}")
            for stages in all_stages:
                split, longest = SPLITS[stages]
                for microbatches in all_microbatches:
                    run = runs[stages, microbatches] = record(o, folder, stages, microbatches, schedule, split, more)
                    p = json_of(o.paceline, "report", "--format", "json", run)["runs"][0]["pipeline"]
                    steps[stages, microbatches] = json_of(o.paceline, "whatif", run, "--microbatches", str(microbatches),
                                                          "--format", "json")["step_s"]
                    difference = p["bubble"] / p["predicted_bubble"] - 1
                    right = abs(difference) <= BUBBLE_LIMIT and p["longest_stage"] == longest
                    print(f"{stages:>6} {microbatches:>12} {steps[stages, microbatches] * 1e3:>5.0f} ms {p['bubble']:>7.1%} "
                          f"{p['predicted_bubble']:>9.1%} {difference:>+10.1%} {p['ideal_bubble']:>12.1%} "
                          f"{p['longest_stage']:>6} ({p['imbalance']:.2f}){checks.mark(right)}", flush=True)
            print("predicted steps")
            for (stages, microbatches), run in runs.items():
                for other in all_microbatches:
                    if other != microbatches:
                        compare_steps(o, checks, f"{stages} stages, from {microbatches} to {other} microbatches", run,
                                      ["--microbatches", str(other)], steps[stages, other])
                for other in all_stages:
                    if other != stages:
                        compare_steps(o, checks, f"{microbatches} microbatches, from {stages} to {other} stages", run,
                                      ["--stages", str(other), "--split", SPLITS[other][0]], steps[other, microbatches])
            for stages in all_stages:
                microbatches = all_microbatches[-1]
                _, title = predicted_step(o, runs[stages, microbatches], "--split", "balanced")
                split = title.rpartition("split ")[2]
                run = record(o, folder, stages, microbatches, schedule, split, more)
                measured = json_of(o.paceline, "whatif", run, "--stages", str(stages), "--format", "json")["step_s"]
                compare_steps(o, checks, f"{stages} stages, {microbatches} microbatches, split {split}",
                              runs[stages, microbatches], ["--split", "balanced"], measured)
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
