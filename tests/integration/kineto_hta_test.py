#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: kineto_hta_test.py PACELINE SOURCES

Compares the report of two real ranks with the figures that Holistic Trace Analysis printed for them
(tests/data/hta-kineto.json, made by tests/bench/hta_figures.py), to all digits printed. Exit status 77: the traces are absent.
"""
import hashlib
import json
import pathlib
import re
import subprocess
import sys


def near(ours, theirs, digits=6):
    return abs(ours - theirs) <= 1.5 * 10**-digits


def key_of(name):
    plain = re.sub(r"GPU \d+", "device", name).lower()
    return hashlib.sha1(plain.encode()).hexdigest()[:16]


def figures_of(described):
    """In pandas' order."""
    return [described[key] for key in ("count", "mean", "stddev", "min", "p25", "median", "p75", "max")]


def compare(report, golden):
    """Returns one line for each difference."""
    wrong = []

    def check(what, ours, theirs):
        if len(ours) != len(theirs) or not all(near(a, b) for a, b in zip(ours, theirs)):
            wrong.append(f"{what}: {ours}, but Holistic Trace Analysis has {theirs}")

    for rank, theirs in enumerate(golden["ranks"]):
        ours = report["per_rank"][rank]
        gpu = ours["gpu"]
        for key in ("idle", "compute", "noncompute", "span"):
            check(f"rank {rank} {key}", [gpu[key + "_ns"] / 1000], [theirs[key + "_us"]])
        overlap = ours["overlap"]
        if round(100 * overlap["hidden_ns"] / overlap["communication_ns"], 2) != theirs["overlap_percent"]:
            wrong.append(f"rank {rank} overlap: {overlap}, but Holistic Trace Analysis has {theirs['overlap_percent']} %")
        kernels = {key_of(k["name"]): [k[key + "_ns"] / 1000 for key in ("sum", "min", "max", "mean", "stddev")]
                   for k in gpu["kernels"]}
        if set(kernels) != set(theirs["kernels"]):
            wrong.append(f"rank {rank}: {len(set(kernels) ^ set(theirs['kernels']))} kernels only one of both has")
        for key in set(kernels) & set(theirs["kernels"]):
            check(f"rank {rank} kernel {key}", kernels[key], theirs["kernels"][key])
        for key, column in (("call_ns", "cpu_duration"), ("gpu_ns", "gpu_duration"), ("delay_ns", "launch_delay")):
            described = figures_of(gpu["launches"][key])
            check(f"rank {rank} {column}", described[:1] + [value / 1000 for value in described[1:]],
                  theirs["launches"][column])
        for key in ("slow_calls", "late_starts", "short_work"):
            check(f"rank {rank} {key}", [gpu["launches"][key]], [theirs[key]])
        queues = {queue["stream"].split()[-1]: figures_of(queue) for queue in gpu["queue"]}
        if set(queues) != set(theirs["queues"]):
            wrong.append(f"rank {rank}: queues of the streams {sorted(queues)}, expected {sorted(theirs['queues'])}")
        for stream in set(queues) & set(theirs["queues"]):
            check(f"rank {rank} queue of stream {stream}", queues[stream], theirs["queues"][stream])
    return wrong


def main(program, sources):
    sources = pathlib.Path(sources)
    samples = sources.parent / "shared" / "traces" / "kineto"
    if not samples.is_dir():
        print(f"skipped: {samples} is absent")
        return 77
    golden = json.loads((sources / "tests" / "data" / "hta-kineto.json").read_text())
    report = json.loads(subprocess.run([program, "report", "--format", "json", samples], check=True,
                                       stdout=subprocess.PIPE).stdout)
    wrong = compare(report["runs"][0] if "runs" in report else report, golden)
    print("\n".join(wrong) or "all figures agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
