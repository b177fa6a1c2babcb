#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of tests/gpu.sh. Each prints a line and writes JSON; status 1 where a limit is exceeded.

figures.py kernel-times EVENTS.json REPORT.json OUT     the trace's kernel times within 1 % of CUDA's events
figures.py training-step REPORT.json LOG.jsonl OUT      what the recorded step consists of
figures.py accuracy CPU.jsonl CUDA.jsonl OUT            the GPU's accuracy no lower than the CPU's by more than chance
figures.py losses A.jsonl B.jsonl OUT [none]            the losses of two runs, a tenth apart at most; none: without a limit
figures.py overhead PERCENT|none WITH.jsonl… WITHOUT.jsonl… OUT
                                                        the recorder's cost of a step, and the upper end of its interval
                                                        at most at the limit
figures.py fusion FUSED.jsonl… SEPARATE.jsonl… OUT      a step of fp16 with cuDNN's fused kernels ÷ one without
figures.py kernels RECORDED.csv KINETO.csv OUT          kernels (name, number, ns) of two traces of the same program: the same
                                                        names and numbers, and the sums of their times within 1 %
figures.py collect OUTPUT                               steps/*.json and the steps' ends into figures.json and figures.txt
"""
import csv
import json
import math
import pathlib
import random
import statistics
import sys

WARM_UP = 30  # iterations at the beginning of a run that are not counted


def read(name):
    return json.loads(pathlib.Path(name).read_text())


def events_of(name, kind):
    lines = map(json.loads, pathlib.Path(name).read_text().splitlines())
    return [line for line in lines if line["event"] == kind]


def median_step(name, skip=WARM_UP):
    seconds = [line["seconds"] for line in events_of(name, "iteration")]
    if len(seconds) <= skip:
        raise SystemExit(f"{name}: {len(seconds)} iterations, and the first {skip} are not counted")
    return statistics.median(seconds[skip:])


def finish(out, text, figures, right):
    figures["within_limits"] = right
    pathlib.Path(out).write_text(json.dumps(figures, indent=1) + "\n")
    print(text)
    return 0 if right else 1


def kernel_times(events, report, out):
    events, report = read(events), read(report)
    gpu = report["runs"][0]["per_rank"][0]["gpu"]
    # Two kernels ran before those that the events enclose.
    traced_ms = gpu["compute_ns"] * 1e-6 - events["before"] * events["one_ms"]
    difference = traced_ms / events["event_ms"] - 1
    text = (f"{events['kernels']} kernels: {traced_ms:.3f} ms in the trace, {events['event_ms']:.3f} ms by CUDA's events "
            f"({difference:+.3%}; limit 1 %)")
    return finish(out, text, {**events, "traced_ms": traced_ms, "difference": difference}, abs(difference) <= 0.01)


def training_step(report, log, out):
    run = read(report)["runs"][0]
    rank = run["per_rank"][0]
    gpu, median = rank["gpu"], run["iterations"]["median_ns"]
    figures = {"median_ns": median, "gpu": gpu, "phases": rank["phases"], "log_median_s": median_step(log)}
    text = (f"step {median * 1e-6:.3f} ms; of the GPU's {gpu['span_ns'] * 1e-6:.1f} ms: computing "
            f"{gpu['compute_ns'] / gpu['span_ns']:.1%}, idle {gpu['idle_ns'] / gpu['span_ns']:.1%}")
    return finish(out, text, figures, gpu["compute_ns"] > 0)


def accuracy(cpu, cuda, out):
    of = {}
    for name, log in (("cpu", cpu), ("cuda", cuda)):
        last = [line for line in events_of(log, "epoch") if "test_accuracy" in line][-1]
        of[name] = last["test_accuracy"]
    images = 512
    # Three standard deviations of the difference of two shares of so many images.
    chance = 3 * math.sqrt(sum(p * (1 - p) for p in of.values()) / images + 1e-4)
    text = f"accuracy on the test: GPU {of['cuda']:.4f}, CPU {of['cpu']:.4f} (may be {chance:.3f} lower by chance)"
    return finish(out, text, {**of, "chance": chance}, of["cuda"] >= of["cpu"] - chance)


def losses(a, b, out, limit=0.1):
    # Rounding differs, and training makes more of it with every step: what is missed or taken twice shows sooner.
    pairs = [(x["loss"], y["loss"]) for x, y in zip(events_of(a, "iteration"), events_of(b, "iteration"))]
    apart = max(abs(x - y) / max(abs(y), 0.1) for x, y in pairs)
    text = f"losses of {len(pairs)} steps: at most {apart:.2%} apart" + ("" if limit == "none" else f" (limit {limit:.0%})")
    return finish(out, text, {"steps": len(pairs), "apart": apart}, limit == "none" or apart <= limit)


def overhead(limit, *names):
    *logs, out = names
    half = len(logs) // 2
    ratios = [median_step(a) / median_step(b) for a, b in zip(logs[:half], logs[half:])]
    generator = random.Random(1)
    medians = sorted(statistics.median(generator.choices(ratios, k=half)) for _ in range(2000))
    low, high = medians[50], medians[1949]
    median = statistics.median(ratios)
    text = f"recorder's cost of a step: {median - 1:+.3%}, 95 %: {low - 1:+.3%} to {high - 1:+.3%} ({half} pairs" + (
        ")" if limit == "none" else f"; limit {limit} %)")
    right = limit == "none" or high <= 1 + float(limit) / 100
    return finish(out, text, {"ratios": ratios, "median": median, "interval": [low, high]}, right)


def fusion(*names):
    *logs, out = names
    half = len(logs) // 2
    ratios = [median_step(a) / median_step(b) for a, b in zip(logs[:half], logs[half:])]
    median = statistics.median(ratios)
    return finish(out, f"a step with fused convolutions takes {median:.3f} of one without", {"ratios": ratios, "median": median},
                  True)


def kernels(recorded, kineto, out):
    both = []
    for name in (recorded, kineto):
        with open(name, newline="") as file:
            rows = list(csv.reader(file))[1:]
        both.append({row[0]: (int(row[1]), int(row[2])) for row in rows})
    ours, theirs = both
    different = sorted(name for name in ours.keys() | theirs.keys()
                       if ours.get(name, (0, 0))[0] != theirs.get(name, (0, 0))[0])
    times = [sum(ns for _, ns in side.values()) for side in both]
    ratio = times[0] / times[1] if times[1] else math.nan
    text = (f"{sum(n for n, _ in ours.values())} kernels of {len(ours)} names, {times[0] * 1e-6:.3f} ms; in PyTorch's own trace "
            f"{sum(n for n, _ in theirs.values())} of {len(theirs)}, {times[1] * 1e-6:.3f} ms ({ratio - 1:+.2%}; limit 1 %)")
    if different:
        text += f"; other numbers of {len(different)}, such as {different[0]}"
    return finish(out, text, {"recorded": ours, "kineto": theirs, "ratio": ratio}, not different and abs(ratio - 1) <= 0.01)


def collect(output):
    output = pathlib.Path(output)
    steps = [line.split("\t") for line in (output / "steps" / "all.tsv").read_text().splitlines()]
    figures = {"steps": [{"name": n, "status": s, **({"reason": r} if r else {})} for n, s, r in steps]}
    for file in sorted((output / "steps").glob("*.json")):
        figures[file.stem] = read(file)
    (output / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    lines = [f"{name:16} {status:8} {reason}" for name, status, reason in steps]
    for case in figures.get("pytorch", {}).get("cases", []):
        lines.append(f"pytorch {case['name']}: {case['text']}")
    (output / "figures.txt").write_text("\n".join(lines) + "\n")
    return 0


def main(arguments):
    work = {"kernel-times": kernel_times, "training-step": training_step, "accuracy": accuracy, "losses": losses, "fusion": fusion,
            "overhead": overhead, "kernels": kernels, "collect": collect}
    if not arguments or arguments[0] not in work:
        print(__doc__, file=sys.stderr)
        return 2
    return work[arguments[0]](*arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
