#!/usr/bin/env python3
"""usage: pipeline_bubble.py PACELINE PACELINE-TRAIN [--stages 2] [--microbatches 1,2,4,8] [--schedule gpipe] [-- OPTION…]

Records pipelines with one thread for each stage and prints, for each number of microbatches, the measured bubble, the one
that follows from the measured times of the stages in that order, and that of equal stages. Then it prints the lengths
that the report of each run predicts for the other numbers of microbatches beside the measured ones. Give each stage a core
of its own. Options after -- go to the trainer, such as --model vgg16_bn.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from mpi_environment import MPI_ENVIRONMENT

RUN = ["--synthetic", "--image-size", "32", "--batch-size", "32", "--test-images", "4", "--eval-every", "0", "--threads", "1",
       "--lr", "0.001", "--schedule", "constant", "--freeze-batch-norm", "--iterations", "12", "--train-images", "384"]


def pipeline_of(o, microbatches, more):
    """The report's figures of a run."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([o.paceline, "record", "-o", str(pathlib.Path(folder) / "run"), "mpirun", "--bind-to", "none", "-n",
                        str(o.stages), o.train, *RUN, *more, "--pipeline-stages", str(o.stages), "--microbatches",
                        str(microbatches), "--pipeline-schedule", o.schedule], check=True, env=MPI_ENVIRONMENT,
                       stdout=subprocess.DEVNULL)
        report = subprocess.run([o.paceline, "report", "--format", "json", str(pathlib.Path(folder) / "run")], check=True,
                                capture_output=True, text=True)
        return json.loads(report.stdout)["runs"][0]["pipeline"]


def main():
    arguments, more = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, more = arguments[:at], arguments[at + 1:]
    parser = argparse.ArgumentParser()
    parser.add_argument("paceline")
    parser.add_argument("train")
    parser.add_argument("--stages", type=int, default=2)
    parser.add_argument("--microbatches", default="1,2,4,8")
    parser.add_argument("--schedule", default="gpipe")
    o = parser.parse_args(arguments)
    runs = {}
    print(f"{'microbatches':>12} {'length':>9} {'bubble':>7} {'from stages':>12} {'equal stages':>13} {'longest stage':>14}")
    for microbatches in (int(text) for text in o.microbatches.split(",")):
        p = runs[microbatches] = pipeline_of(o, microbatches, more)
        print(f"{microbatches:>12} {p['length_s'] * 1e3:>6.0f} ms {p['bubble']:>7.1%} {p['predicted_bubble']:>12.1%} "
              f"{p['ideal_bubble']:>13.1%} {p['longest_stage']:>6} ({p['imbalance']:.2f})", flush=True)
    print("\npredicted and measured lengths with other numbers of microbatches")
    for microbatches, p in runs.items():
        for other in p.get("other_microbatches", []):
            measured = runs.get(other["microbatches"])
            if measured:
                ratio = other["length_s"] / measured["length_s"]
                print(f"  from {microbatches} to {other['microbatches']}: {other['length_s'] * 1e3:.0f} ms, measured "
                      f"{measured['length_s'] * 1e3:.0f} ms ({ratio - 1:+.1%})")


if __name__ == "__main__":
    main()
