#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: hta_figures.py FILE…

Runs Meta's Holistic Trace Analysis on Kineto traces, one FILE for each rank, and prints its figures as JSON: the
breakdown of each GPU's time, the overlap, the table of kernels, the launches and the queues. "seconds" is the time of
reading and of each analysis, without the imports of Python. tests/data/hta-kineto.json was made by it:

    python3 -m venv /tmp/hta && /tmp/hta/bin/pip install HolisticTraceAnalysis==0.5.0
    /tmp/hta/bin/python hta_figures.py rank-0-of-128.json.gz rank-1-of-128.json.gz
"""
import hashlib
import json
import logging
import sys
import time

from hta.trace_analysis import TraceAnalysis


def key_of(name):
    """A kernel's name, short: the names of templates have thousands of characters."""
    return hashlib.sha1(name.lower().encode()).hexdigest()[:16]


def main(files):
    logging.disable(logging.CRITICAL)
    seconds = {}

    def timed(what, function, *arguments, **options):
        begin = time.perf_counter()
        result = function(*arguments, **options)
        seconds[what] = round(time.perf_counter() - begin, 3)
        return result

    analysis = timed("read", TraceAnalysis, trace_files=dict(enumerate(files)), trace_dir="",
                     include_last_profiler_step=True)
    ranks = list(range(len(files)))
    temporal = timed("breakdown", analysis.get_temporal_breakdown, visualize=False)
    overlap = timed("overlap", analysis.get_comm_comp_overlap, visualize=False)
    _, kernels = timed("kernels", analysis.get_gpu_kernel_breakdown, visualize=False, num_kernels=10**6,
                       duration_ratio=1.0, include_memory_kernels=True)
    launches = timed("launches", analysis.get_cuda_kernel_launch_stats, ranks=ranks, visualize=False)
    queues = timed("queues", analysis.get_queue_length_summary, ranks=ranks)
    out = {"seconds": seconds, "total_seconds": round(sum(seconds.values()), 3), "ranks": []}
    for rank in ranks:
        row = temporal[temporal["rank"] == rank].iloc[0]
        table = kernels[kernels["rank"] == rank]
        launch = launches[rank]
        described = launch[["cpu_duration", "gpu_duration", "launch_delay"]].describe()
        out["ranks"].append({
            "idle_us": row["idle_time(us)"],
            "compute_us": row["compute_time(us)"],
            "noncompute_us": row["non_compute_time(us)"],
            "span_us": row["kernel_time(us)"],
            "overlap_percent": float(overlap[overlap["rank"] == rank].iloc[0]["comp_comm_overlap_pctg"]),
            "kernels": {key_of(k["name"]): [k["sum (us)"], k["min (us)"], k["max (us)"], round(k["mean (us)"], 6),
                                            round(k["stddev"], 6)] for _, k in table.iterrows()},
            "launches": {column: [round(float(value), 6) for value in described[column]] for column in described},
            "slow_calls": int((launch["cpu_duration"] > 50).sum()),
            "late_starts": int((launch["launch_delay"] > 100).sum()),
            "short_work": int(((launch["cpu_duration"] <= 50) &
                               (launch["gpu_duration"] < launch["cpu_duration"])).sum()),
            "queues": {str(stream): [round(float(value), 6) for value in row]
                       for (of, stream), row in queues.iterrows() if of == rank},
        })
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
