#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: h200_test.py PACELINE DATA: traces that were recorded on an NVIDIA H200 (tests/gpu.sh, with CUDA 13.0, driver
580.159, PyTorch 2.11 and NCCL 2.28), held against PyTorch's own trace of the same program and against what was injected.
"""
import json
import re
import subprocess
import sys

PACELINE, DATA = sys.argv[1:]


def output(*arguments):
    return subprocess.run([PACELINE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True).stdout


def query(run, sql):
    return json.loads(output("query", "--format", "json", f"{DATA}/{run}", sql))


def kernels(run):
    rows = query(run, """SELECT name, count(*) AS number, sum(duration_ns) AS ns FROM slices WHERE category = 'kernel'
        GROUP BY name""")
    return {row["name"]: (row["number"], row["ns"]) for row in rows}


# Two runs of one program: one recorded by us, one by PyTorch's profiler.
ours, theirs = kernels("torch_step"), kernels("torch_step.kineto.json.gz")
assert len(ours) == 39 and sum(number for number, _ in ours.values()) == 2179, len(ours)
assert {name: number for name, (number, _) in ours.items()} == {name: number for name, (number, _) in theirs.items()}
times = [sum(ns for _, ns in side.values()) for side in (ours, theirs)]
assert abs(times[0] / times[1] - 1) < 0.01, times
calls = query("torch_step", """SELECT count(*) AS number FROM slices AS work
    JOIN arguments AS a ON a.id = work.id AND a.key = 'correlation' WHERE work.category = 'kernel'""")
assert calls == [{"number": 2179}], calls

# Kernels of a stream that overlap, by programmatic dependent launch, are work of one stream.
gpu = json.loads(output("report", "--format", "json", f"{DATA}/torch_step"))["runs"][0]["per_rank"][0]["gpu"]
for figures in (gpu["idle"], gpu["queue"]):
    assert [of["stream"] for of in figures] == ["GPU 0 stream 7 (default)", "GPU 0 stream 13", "GPU 0 stream 29"], figures

# Rank 1 sleeps 30 ms in each step before its backward pass. torchrun itself, which asks for GPUs, is no rank.
info = output("info", f"{DATA}/ddp_gloo_slow_rank")
assert "2 ranks on 1 host" in info and "this process started the ranks and is none itself" in info, info
findings = json.loads(output("report", "--format", "json", f"{DATA}/ddp_gloo_slow_rank"))["findings"]
late = [re.search(r"Rank (\d) on vm arrived at the collectives of an iteration ([0-9.]+) ms later", finding["text"])
        for finding in findings]
late = [match.groups() for match in late if match]
assert len(late) == 1 and late[0][0] == "1" and 25 <= float(late[0][1]) <= 36, findings

# NCCL's plugin, with two ranks: each collective call of the ten iterations is there and has its partner.
events = query("nccl_two_ranks", "SELECT rank, count(*) AS number FROM slices WHERE domain = 'nccl' GROUP BY rank")
assert [row["rank"] for row in events] == [0, 1] and events[0]["number"] == events[1]["number"] > 0, events
matched = query("nccl_two_ranks", """SELECT count(*) AS number, count(last_rank) AS matched FROM collectives
    WHERE operation LIKE '%llreduce%' OR operation LIKE '%AllReduce%'""")
assert matched[0]["number"] == matched[0]["matched"] > 100, matched
print("right")
