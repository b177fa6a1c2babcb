#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: matrix.py --paceline FILE [--python FILE] [--ranks 2,3] [--modules] [--any-other] [--keep FOLDER] [CASE…]

Runs the programs of cases.py with and without `paceline record --pytorch` and prints a table in Markdown: whether every
iteration was found, the share of `other` in iterations, the collectives and messages that torch's dispatcher counted and those
of them that the trace has with bytes and group, what ranks waited in collectives, and whether status, losses and weights are
equal. The interpreter, which is that of $PACELINE_TORCH_PYTHON unless it is given, needs torch; a case whose packages it lacks is left
out. Ends with 1 if a case fails, and with 77 without an interpreter.
"""
import argparse
import collections
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def run(command, **more):
    environment = dict(os.environ, OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", **more)
    environment.pop("PACELINE_JOB", None)
    environment["PATH"] = os.path.dirname(command[0]) + ":" + environment["PATH"]
    return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=900)


def others_of(rows):
    """For each rank, the share of its whole iterations that is in no range: the phase `other`. The batches after the last
    step are an iteration that was not finished."""
    iterations, inside = {}, {}
    for row in rows:
        if row["kind"] != "slice" or '"torch"' not in row["args"]:
            continue
        begin, track = int(row["start_ns"]), (row["rank"], row["track"])
        span = (begin, begin + int(row["duration_ns"]))
        if row["name"] == "iteration" and '"unfinished"' not in row["args"]:
            iterations.setdefault(track, []).append(span)
        elif row["name"] != "iteration" and row["depth"] == "1":
            inside.setdefault(track, []).append(span)
    shares = []
    for track, spans in iterations.items():
        covered = sum(end - begin for begin, end in inside.get(track, []) if any(a <= begin < b for a, b in spans))
        shares.append(1 - covered / sum(end - begin for begin, end in spans))
    return shares or [1]


def calls_of(rows):
    """How many calls the trace has, by rank, operation, group and bytes. What the counter calls group 0 is the default group."""
    calls = collections.Counter()
    for row in rows:
        if row["kind"] == "slice" and row["category"] in ("collective", "point-to-point") and row["name"].startswith("gloo:"):
            arguments = json.loads(row["args"])
            group = {"default group": "0", "group 0": "0, not the default group"}.get(arguments["communicator"])
            group = group or arguments["communicator"].replace("group ", "")
            calls[int(row["rank"]), row["name"].replace("gloo:", ""), group, arguments["bytes"]] += 1
    return calls


def counted_in(folder):
    counts = collections.Counter()
    for file in pathlib.Path(folder).glob("counted.*"):
        for line in file.read_text().splitlines():
            *key, number = json.loads(line)
            counts[tuple(key)] += number
    return counts


def without_coalesced(missing, more):
    """DistributedDataParallel's first broadcast is one call, which broadcasts the tensors of each type."""
    def sums(calls):
        found = collections.Counter()
        for (rank, name, group, size), number in calls.items():
            if name == "broadcast":
                found[rank, group] += size * number
        return found
    if sums(missing) != sums(more):
        return missing, more
    return [{key: number for key, number in calls.items() if key[1] != "broadcast"} for calls in (missing, more)]


def launch_of(options, case, about, ranks):
    program = [str(HERE / "cases.py"), case]
    if about["ranks"] == 1 or about["launch"] == "self":
        return [options.python, *program]
    if about["launch"] in ("ranks", "fork"):
        return [options.python, str(HERE / "launch.py"), *["--fork"][about["launch"] == "ranks":], str(ranks), *program]
    return [options.python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(ranks), *program]


def check_case(options, case, about, ranks, folder):
    """Returns the row of the table, and what is wrong."""
    wrong = []
    launch = launch_of(options, case, about, ranks)
    ended = []
    for name in "alone", "recorded":
        os.makedirs(f"{folder}/{name}")
        more = {"CASE_FOLDER": f"{folder}/{name}", "CASE_COUNTS": f"{folder}/{name}", "RANKS": str(ranks)}
        mode = "--pytorch=modules" if options.modules else "--pytorch"
        record = [options.paceline, "record", mode, "--scheduler", "sums", "-o", folder + "/run", "--"]
        ended.append(run(launch if name == "alone" else record + launch, **more))
        pathlib.Path(f"{folder}/{name}.txt").write_text(ended[-1].stdout + ended[-1].stderr)
    alone, recorded = ended
    if alone.returncode != recorded.returncode:
        return None, [f"status {alone.returncode} alone, {recorded.returncode} recorded: {recorded.stderr[-1500:]}"]
    if alone.returncode != 0:
        return None, [f"status {alone.returncode}: {alone.stderr[-1500:]}"]
    lines = [sorted(re.findall("rank [0-9]+: steps .*", ended.stdout)) for ended in (alone, recorded)]
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
        rows = list(csv.DictReader(file))
    others, calls, counted = others_of(rows), calls_of(rows), counted_in(folder + "/recorded")
    steps = max([int(number) for number in re.findall("steps ([0-9]+)", " ".join(lines[0]))] or [0])
    for rank in found["per_rank"]:
        phases = rank["phases"]
        if sum(phases.values()) != rank["wall_ns"]:
            wrong.append(f"the phases of rank {rank['rank']} add up to {sum(phases.values())}, not {rank['wall_ns']}")
    iterations = found.get("iterations", {}).get("count", 0)
    if iterations != steps:
        wrong.append(f"{iterations} of {steps} iterations")
    if max(others) >= 0.05 and not about["other"] and not options.any_other:
        wrong.append(f"other is {max(others):.1%}")
    missing, more = without_coalesced(counted - calls, calls - counted)
    if missing:
        wrong.append(f"counted, but not in the trace: {dict(missing)}")
    if counted and more:
        wrong.append(f"in the trace, but not counted: {dict(more)}")
    waited = sum(row["wait_ns"] for row in found.get("collectives", []) if row["operation"].startswith("gloo:"))
    matched = sum(row["count"] for row in found.get("collectives", []) if row["operation"].startswith("gloo:"))
    if about["collectives"] and (matched < steps or waited == 0):
        wrong.append(f"{matched} collectives matched, waits {waited} ns")
    if found.get("unmatched_calls", 0) > 0:
        wrong.append(f"{found['unmatched_calls']} calls do not match")
    seen = sum(counted.values()) - sum(missing.values())
    row = [case, ranks, f"{iterations} of {steps}", f"{max(others):.2%}",
           f"{seen} of {sum(counted.values())}" if counted else "–", f"{waited / 1e6:.1f} ms", "equal" if equal else "DIFFERENT"]
    return row, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paceline", required=True)
    parser.add_argument("--python", default=os.environ.get("PACELINE_TORCH_PYTHON"))
    parser.add_argument("--ranks", default="2,3")
    parser.add_argument("--modules", action="store_true")
    parser.add_argument("--any-other", action="store_true", help="the share of `other` does not fail a case: for busy machines")
    parser.add_argument("--keep", help="folder for outputs and traces")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    if not options.python:
        print("skipped: PACELINE_TORCH_PYTHON names no interpreter with torch", file=sys.stderr)
        return 77
    listed = run([options.python, str(HERE / "cases.py"), "--list"])
    if listed.returncode != 0:
        sys.exit(listed.stderr)
    programs = json.loads(listed.stdout)
    failed = False
    print("| program | ranks | iterations | `other` in them | collectives and messages | waits in them | losses and weights |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for case in options.cases or programs:
        about = programs[case]
        if about["lacks"]:
            print(f"matrix.py: {case} left out: {options.python} has no {about['lacks']}", file=sys.stderr)
            continue
        for ranks in [about["ranks"]] if about["ranks"] else map(int, options.ranks.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                if options.keep:
                    folder = f"{options.keep}/{case}.{ranks}"
                    os.makedirs(folder)
                row, wrong = check_case(options, case, about, ranks, folder)
            if row:
                print("|", " | ".join(map(str, row)), "|", flush=True)
            for line in wrong:
                print(f"matrix.py: {case} on {ranks}: {line}", file=sys.stderr, flush=True)
            failed = failed or bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
