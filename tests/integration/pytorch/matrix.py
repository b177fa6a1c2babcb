#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: matrix.py --paceline FILE --python FILE [--ranks 2,3] [--modules] [CASE…]

Runs the programs of cases.py with and without `paceline record --pytorch` and prints a table in Markdown: whether every
iteration was found, the share of `other` in iterations, the matched collectives and what ranks waited in them, and whether losses and
weights are equal. The interpreter needs torch; a case whose packages it lacks is left out. Ends with 1 if a case fails.
"""
import argparse
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
NEEDS = {"lightning": "lightning", "accelerate": "accelerate", "transformers": "transformers",
         "fsdp": "torch.distributed.fsdp", "fsdp2": "torch.distributed.fsdp._fully_shard",
         "ddp-compile": "torch._dynamo"}
ONE_RANK = ("plain",)


def run(command, **more):
    environment = dict(os.environ, OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", **more)
    environment.pop("PACELINE_JOB", None)
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=900)


def others_of(rows):
    """For each rank, the share of its whole iterations that is in no range: the phase `other`. The batches after the last
    step are an iteration that was not finished."""
    iterations, inside = {}, {}
    for row in rows:
        if row["kind"] != "slice" or row["track"] != "main thread" or '"torch"' not in row["args"]:
            continue
        begin = int(row["start_ns"])
        span = (begin, begin + int(row["duration_ns"]))
        if row["name"] == "iteration" and '"unfinished"' not in row["args"]:
            iterations.setdefault(row["rank"], []).append(span)
        elif row["name"] != "iteration" and row["depth"] == "1":
            inside.setdefault(row["rank"], []).append(span)
    shares = []
    for rank, spans in iterations.items():
        covered = sum(end - begin for begin, end in inside.get(rank, []) if any(a <= begin < b for a, b in spans))
        shares.append(1 - covered / sum(end - begin for begin, end in spans))
    return shares or [1]


def check_case(options, case, ranks):
    """Returns the row of the table, and what is wrong."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        launch = [options.python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(ranks)]
        program = [str(HERE / "cases.py"), case]
        if case in ONE_RANK:
            launch = [options.python]
        alone = run(launch + program, CASE_FOLDER=folder + "/alone")
        mode = "--pytorch=modules" if options.modules else "--pytorch"
        recorded = run([options.paceline, "record", mode, "-o", folder + "/run", "--", *launch, *program],
                       CASE_FOLDER=folder + "/recorded")
        for name, ended in (("alone", alone), ("recorded", recorded)):
            if ended.returncode != 0:
                return None, [f"{name}: status {ended.returncode}: {ended.stderr[-1500:]}"]
        lines = [sorted(re.findall("^rank .*", ended.stdout, re.M)) for ended in (alone, recorded)]
        equal = lines[0] == lines[1] and len(lines[0]) == ranks
        if not equal:
            wrong.append(f"results differ: {lines}")
        said = re.findall("^paceline.*", recorded.stderr, re.M)
        if said:
            wrong.append(f"the recorder said: {said}")
        report = run([options.paceline, "report", "--format", "json", folder + "/run"])
        if report.returncode != 0:
            return None, [f"report: {report.stderr}"]
        found = json.loads(report.stdout)["runs"][0]
        run([options.paceline, "export", "--to", "csv", "-o", folder + "/run.csv", folder + "/run"])
        with open(folder + "/run.csv", newline="") as file:
            others = others_of(csv.DictReader(file))
    steps = int(re.search("steps ([0-9]+)", lines[0][0]).group(1))
    for rank in found["per_rank"]:
        phases = rank["phases"]
        if sum(phases.values()) != rank["wall_ns"]:
            wrong.append(f"the phases of rank {rank['rank']} add up to {sum(phases.values())}, not {rank['wall_ns']}")
    iterations = found["iterations"]["count"]
    if iterations != steps:
        wrong.append(f"{iterations} of {steps} iterations")
    if max(others) >= 0.05:
        wrong.append(f"other is {max(others):.1%}")
    rows = [row for row in found.get("collectives", []) if row["operation"].startswith("gloo:")]
    matched = sum(row["count"] for row in rows)
    waited = sum(row["wait_ns"] for row in rows)
    if ranks > 1 and (matched < steps or waited == 0 or found.get("unmatched_calls", 0) > 0):
        wrong.append(f"{matched} collectives matched, {found.get('unmatched_calls')} not, waits {waited} ns")
    row = [case, ranks, f"{iterations} of {steps}", f"{max(others):.2%}", matched, f"{waited / 1e6:.1f} ms",
           "equal" if equal else "DIFFERENT"]
    return row, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--ranks", default="2,3")
    parser.add_argument("--modules", action="store_true")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    sys.path.insert(0, str(HERE))
    cases = re.findall(r'^    "([a-z0-9-]+)": ', (HERE / "cases.py").read_text(), re.M)
    failed = False
    print("| program | ranks | iterations | `other` in them | collectives | waits in them | losses and weights |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for case in options.cases or cases:
        if case in NEEDS and run([options.python, "-c", f"import {NEEDS[case]}"]).returncode != 0:
            print(f"matrix.py: {case} left out: {options.python} has no {NEEDS[case]}", file=sys.stderr)
            continue
        for ranks in [1] if case in ONE_RANK else map(int, options.ranks.split(",")):
            row, wrong = check_case(options, case, ranks)
            if row:
                print("|", " | ".join(map(str, row)), "|", flush=True)
            for line in wrong:
                print(f"matrix.py: {case} on {ranks}: {line}", file=sys.stderr, flush=True)
            failed = failed or bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
