#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: programs.py [--only A,B] OUTPUT

Programs that use a GPU in the ways of other people, each alone and then recorded: status and output must be the same, and
the trace must have the kernels. Reports and the traces' figures go to OUTPUT/NAME.*; OUTPUT/programs.json has the table.
They run at the same time, so their durations say nothing. PYTHON: the interpreter, and words before it (env …).
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent / "programs"
PYTHON = os.environ.get("PYTHON", "python3").split(" ")


def torchrun(ranks, port, *arguments):
    return [*PYTHON, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", f"--master-port={port}", *arguments]


def record(folder, program, *options):
    return ["paceline", "record", "--force", *options, "-o", folder, "--", *program]


def parts(name):
    return [*PYTHON, str(HERE / "torch_parts.py"), name]


def other(name):
    return [*PYTHON, str(HERE / "other_frameworks.py"), name]


# name: (program, options of record, what the query of counts must show at least)
DDP = str(HERE / "ddp.py")
PROGRAMS = {
    "ddp_nccl": (torchrun(1, 29501, DDP, "nccl", "0"), ["--pytorch"], {"kernels": 500, "iterations": 29, "nccl": 30}),
    "ddp_nccl_slow_rank": (torchrun(2, 29503, DDP, "nccl", "30"), ["--pytorch"], {"kernels": 1000, "iterations": 58, "nccl": 60}),
    "ddp_gloo_slow_rank": (torchrun(2, 29502, DDP, "gloo", "30"), ["--pytorch"], {"kernels": 1000, "iterations": 58}),
    "fsdp": (parts("fsdp"), ["--pytorch"], {"kernels": 200, "iterations": 19}),
    "compiled": (parts("compiled"), ["--pytorch"], {"kernels": 100, "iterations": 18}),
    "graphs": (parts("graphs"), ["--pytorch"], {"device": 100}),
    "profiler": (parts("profiler"), ["--pytorch"], {"kernels": 150}),
    "threads": (parts("threads"), ["--pytorch"], {"kernels": 4000}),
    "fork": (parts("fork"), ["--pytorch"], {"kernels": 100}),
    "shared": (parts("shared"), ["--pytorch"], {"device": 1}),
    "killed": (parts("killed"), ["--pytorch"], {"kernels": 1000, "iterations": 190}),
    "memory": (parts("memory"), ["--pytorch"], {"device": 100}),
    "fault": (parts("fault"), ["--pytorch"], {}),
    "transformers": (parts("transformers"), ["--pytorch"], {"kernels": 1000, "iterations": 28}),
    "lightning": (parts("lightning"), ["--pytorch"], {"kernels": 100, "iterations": 38}),
    "jax": (other("jax"), [], {"kernels": 30}),
    "cupy": (other("cupy"), [], {"kernels": 60}),
}
COUNTS = {
    "kernels": "SELECT count(*) FROM slices WHERE category = 'kernel'",
    "device": "SELECT count(*) FROM slices WHERE category IN ('kernel', 'memcpy', 'memset', 'graph')",
    "categories": "SELECT group_concat(category || ' ' || n, ', ') FROM (SELECT category, count(*) AS n FROM slices GROUP BY category)",
    "iterations": "SELECT count(*) FROM iterations WHERE finished",
    "nccl": "SELECT count(*) FROM slices WHERE domain = 'nccl'",
}


def run(command, limit=100, **more):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, **more)
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        return "hung", *[(text or b"").decode(errors="replace") for text in (late.stdout, late.stderr)]


def count_of(folder, query):
    status, out, err = run(["paceline", "query", "--format", "csv", folder, query])
    return out.splitlines()[-1].strip('"') if status == 0 and out else f"{status}: {err.strip()[-200:]}"


def try_program(name, output):
    program, options, least = PROGRAMS[name]
    folder = output / name
    shutil.rmtree(folder, ignore_errors=True)
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TOKENIZERS_PARALLELISM": "false"}
    seconds, wrong = [], []
    start = time.monotonic()
    alone = run(program, env=environment)
    seconds.append(round(time.monotonic() - start, 1))
    start = time.monotonic()
    recorded = run(record(str(folder), program, *options), env=environment)
    seconds.append(round(time.monotonic() - start, 1))
    counts = {key: count_of(str(folder), query) for key, query in COUNTS.items()}
    if alone[0] != recorded[0]:
        wrong.append(f"status {alone[0]} alone, {recorded[0]} recorded")
    if alone[1] != recorded[1]:
        wrong.append(f"output {alone[1].strip()[-150:]!r} alone, {recorded[1].strip()[-150:]!r} recorded")
    for key, number in least.items():
        if not counts[key].isdigit() or int(counts[key]) < number:
            wrong.append(f"{counts[key]} {key}, {number} expected")
    texts = [run(["paceline", *what, str(folder)])[1:] for what in (["info"], ["report"])]
    (output / f"{name}.txt").write_text("\n".join(
        [f"== alone {alone[0]}", alone[1][-2000:], alone[2][-3000:], f"== recorded {recorded[0]}", recorded[1][-2000:],
         recorded[2][-3000:], *("\n".join(pair) for pair in texts)]))
    size = sum(file.stat().st_size for file in folder.glob("*.pace")) if folder.exists() else 0
    row = {"name": name, "wrong": wrong, "counts": counts, "seconds": seconds, "trace_bytes": size,
           "status": alone[0], "stderr": [line for line in recorded[2].splitlines() if "paceline" in line][:6]}
    print(f"{name}: {'; '.join(wrong) or 'right'} {counts} {seconds} s", flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--only", default=",".join(PROGRAMS))
    parser.add_argument("output", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        rows = list(pool.map(lambda name: try_program(name, arguments.output), arguments.only.split(",")))
    (arguments.output / "programs.json").write_text(json.dumps(rows, indent=1) + "\n")
    wrong = [row["name"] for row in rows if row["wrong"]]
    print(f"{len(rows) - len(wrong)} of {len(rows)} programs are right" + (f"; wrong: {', '.join(wrong)}" if wrong else ""))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
