#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: prediction_loops.py PACELINE TRAINER [--torch PYTHON] [--rounds N] [--iterations N] [--settings learn|judge|all]
                       [--runs FOLDER] [LOOP…]

Predictions of `paceline whatif` and what comes of them, on two ranks of this machine. For each loop a run A is recorded, the
step of a change is predicted from it, the change is made, and the run B with it is recorded, A and B in turns. A LOOP is a
change, or SETTING:CHANGE; without any, all run. The settings "learn" are those from which the errors of the model were taken,
"judge" are others. Networks of limited rate need root. With --runs, the runs stay in the folder, and those that it has are not
recorded again, so that another version of the program can be judged by them.

Printed are the errors e as parts of the measured step (the mean of B over the rounds), √mean(e² − SE²), the share of predictions
within max(10 %, 2 SE), that of intervals that hold the measured step, and their median half width. SE is that of e, from how much runs
of equal jobs differ: of one run A, from which the step is predicted, and of the mean of B. Where the change saves 5 % or more, it is
printed whether the report gives advice, and what comes of following it.
"""
import argparse
import dataclasses
import json
import math
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
NODES = SOURCE / "samples" / "two_nodes" / "nodes.sh"
DDP = pathlib.Path(__file__).with_name("prediction_loops_ddp.py")


@dataclasses.dataclass(frozen=True)
class Job:
    torch: bool
    model: str
    width: float
    batch: int
    rate: int = 0  # of the network, in units of mbit_for(); 0: shared memory or loopback
    slow: tuple = ()  # rank, ms, in every n-th iteration
    loader: tuple = ()  # rank, ms
    bucket_mb: float = 0
    fp16: bool = False
    updater: str = "allreduce"

    def with_(self, **changes):
        return dataclasses.replace(self, **changes)


def ours(model, width, batch):
    return Job(False, model, width, batch)


def ddp(model, width, batch):
    return Job(True, model, width, batch)


SETTINGS = {
    "learn": {"resnet": ours("resnet18", 0.25, 24), "vgg": ours("vgg11_bn", 0.5, 24),
              "wide": ours("resnet18", 0.125, 64),
              "convolutions": ddp("convolutions", 32, 16), "perceptron": ddp("perceptron", 1024, 64)},
    "judge": {"deep": ours("resnet34", 0.25, 16), "lecture": ours("vgg16_bn", 0.25, 32),
              "bottleneck": ours("resnet50", 0.25, 12),
              "transformer": ddp("transformer", 128, 16), "narrow": ddp("convolutions", 16, 48),
              "thin": ddp("perceptron", 512, 128)},
}
OVERLAP = dict(rate=1, updater="overlap", bucket_mb=0.25)
DOUBLE_BUFFERING = dict(rate=1, updater="double_buffering")
# By the name of the change: which jobs, what A is, what B is, and whatif's option.
CHANGES = {
    "slow-rank": ("all", dict(slow=(1, 30, 1)), dict(slow=()), "--relieve 1"),
    "every-third": ("torch", dict(slow=(1, 60, 3)), dict(slow=()), "--relieve 1"),
    "loader": ("all", dict(loader=(0, 120)), dict(loader=(0, 60)), "--loader 2"),
    "half-bandwidth": ("all", dict(rate=2), dict(rate=1), "--bandwidth 0.5"),
    "twice-bandwidth": ("all", dict(rate=1), dict(rate=2), "--bandwidth 2"),
    "fp16": ("all", dict(rate=1), dict(rate=1, fp16=True), "--fp16"),
    "overlap": ("ours", dict(rate=1), dict(rate=1, updater="overlap", bucket_mb=0.25), "--overlap --bucket-mb 0.25"),
    "double-buffering": ("ours", dict(rate=1), dict(rate=1, updater="double_buffering"), "--double-buffering"),
    "no-overlap": ("ours", OVERLAP, dict(updater="allreduce", bucket_mb=0), "--blocking"),
    "no-double-buffering": ("ours", DOUBLE_BUFFERING, dict(updater="allreduce"), "--blocking"),
    "overlap, fp16": ("ours", OVERLAP, dict(fp16=True), "--fp16"),
    "overlap, twice-bandwidth": ("ours", OVERLAP, dict(rate=2), "--bandwidth 2"),
    "overlap, half-batch": ("ours", OVERLAP, dict(batch=0.5), "--batch 0.5"),
    "double-buffering, fp16": ("ours", DOUBLE_BUFFERING, dict(fp16=True), "--fp16"),
    "double-buffering, twice-bandwidth": ("ours", DOUBLE_BUFFERING, dict(rate=2), "--bandwidth 2"),
    "double-buffering, half-batch": ("ours", DOUBLE_BUFFERING, dict(batch=0.5), "--batch 0.5"),
    "twice-batch": ("all", {}, dict(batch=2), "--batch 2"),
    "half-batch": ("all", {}, dict(batch=0.5), "--batch 0.5"),
}
# What the report may advise, as a change of a job.
ADVICE = [(r"--double-buffering --fp16", dict(updater="double_buffering", fp16=True)), (r"--fp16", dict(fp16=True)),
          (r"--double-buffering", dict(updater="double_buffering")), (r"--overlap", dict(updater="overlap")),
          (r"--relieve \S+|--balanced", dict(slow=(), loader=())), (r"--loader 2", dict(loader=0.5)),
          (r"--bandwidth 2", dict(rate=2)), (r"--bucket-mb (\S+)", dict(bucket_mb=None))]


def mbit_for(job):
    """A network on which the gradient takes about 30 ms from one rank to the other and back."""
    bytes_of = {"resnet18": 11.2e6, "resnet34": 21.3e6, "resnet50": 23.5e6, "vgg11_bn": 9.2e6, "vgg16_bn": 14.7e6,
                "convolutions": None, "perceptron": None, "transformer": None}[job.model]
    if bytes_of is not None:
        values = bytes_of * job.width**2
    elif job.model == "perceptron":
        values = 3072 * job.width + job.width**2
    elif job.model == "transformer":
        values = 2 * 8 * job.width**2 + 48 * job.width
    else:
        values = 9 * job.width**2 * 15
    return max(1, round(values * 4 * 8 / 1e6 / 0.03))


class Loops:
    def __init__(self, paceline, trainer, python, iterations, folder):
        self.paceline, self.trainer, self.python = paceline, trainer, python
        self.iterations, self.folder = iterations, folder
        self.env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1",
                        OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl_vader_single_copy_mechanism="none",
                        OMPI_MCA_hwloc_base_binding_policy="none")
        self.env.setdefault("OMPI_MCA_plm_rsh_agent", "")

    def command(self, job):
        if not job.torch:
            words = [self.trainer, "--synthetic", "--image-size", "32", "--train-images", "25600", "--test-images", "4",
                     "--threads", "1", "--eval-every", "0", "--iterations", str(self.iterations), "--model", job.model,
                     "--width", str(job.width), "--batch-size", str(job.batch), "--communicator", "ring",
                     "--updater", job.updater]
            words += ["--fault", "slow-rank=%d:%d" % job.slow[:2]] if job.slow else []
            words += ["--fault", "slow-loader=%d:%d" % job.loader] if job.loader else []
            words += ["--bucket-mb", str(job.bucket_mb)] if job.bucket_mb and job.updater == "overlap" else []
            return words + (["--allreduce-dtype", "f16"] if job.fp16 else [])
        words = [self.python, str(DDP), "--address", "10.213.7.1" if job.rate else "127.0.0.1",
                 "--port", str(random.randrange(20000, 32000)), "--model", job.model, "--width", str(int(job.width)),
                 "--batch", str(job.batch), "--iterations", str(self.iterations)]
        words += ["--slow", "%d:%d:%d" % job.slow] if job.slow else []
        words += ["--loader", "%d:%d" % job.loader] if job.loader else []
        words += ["--bucket-mb", str(job.bucket_mb)] if job.bucket_mb else []
        return words + (["--fp16"] if job.fp16 else [])

    def record(self, job, name):
        run = self.folder / name
        if run.exists():
            return run
        command = ["mpirun", "--bind-to", "none", "-n", "2"]
        if job.rate:
            rate = f"{job.rate * mbit_for(job)}mbit"
            command = [str(NODES), "--rate", rate, "--burst", "32kb", *command, "--map-by", "node"]
        command += [self.paceline, "record", "-o", str(run)] + (["--pytorch"] if job.torch else [])
        command += ["--", *self.command(job)]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            shutil.rmtree(run, ignore_errors=True)
            raise SystemExit(f"{' '.join(command)}: status {done.returncode}: {done.stderr[-1500:]}")
        return run

    def what_if(self, run, options=""):
        done = subprocess.run([self.paceline, "whatif", str(run), *options.split(), "--format", "json"],
                              capture_output=True, text=True)
        if done.returncode != 0:
            return {"error": done.stderr.strip().splitlines()[-1]}
        return json.loads(done.stdout)


def scaled(job, changes):
    changes = dict(changes)
    if "batch" in changes:
        changes["batch"] = int(job.batch * changes["batch"])
    return job.with_(**changes)


def followed(job, options):
    """The job with the advice carried out; nothing where that cannot be done here."""
    for pattern, change in ADVICE:
        found = re.fullmatch(pattern, options)
        if not found:
            continue
        change = dict(change)
        if "bucket_mb" in change:
            change["bucket_mb"] = float(found[1])
        if change.get("loader") == 0.5:
            change["loader"] = (job.loader[0], job.loader[1] // 2) if job.loader else ()
        if change.get("rate") == 2:
            change["rate"] = 2 * job.rate
        if job.torch and change.get("updater", "allreduce") != "allreduce":
            return None
        after = job.with_(**change)
        return None if after == job else after
    return None


def loop(loops, name, job, change, rounds):
    _, base, other, options = CHANGES[change]
    a = scaled(job, base)
    b = scaled(a, other)
    out = []
    for number in range(rounds):
        place = f"{name}-{change}-{number}".replace(", ", "-")
        run = loops.record(a, place + "a")
        predicted = loops.what_if(run, options)
        listed = loops.what_if(run)
        after = loops.what_if(loops.record(b, place + "b"))
        if "error" in after or "step_s" not in listed:
            out.append({"loop": f"{name}:{change}", "jobs": {"a": a, "b": b}, "error": after.get("error") or listed.get("error")})
            continue
        row = {"loop": f"{name}:{change}", "change": change, "a": listed["step_s"], "b": after["step_s"],
               "jobs": {"a": a, "b": b}}
        if "error" in predicted:
            row["error"] = predicted["error"]
        else:
            first = predicted["predictions"][0]
            row |= {"predicted": first["step_s"], "interval": first.get("ci95")}
        if after["step_s"] < 0.95 * listed["step_s"] and not change.endswith("batch"):
            row["advice"] = advice(loops, a, b, listed, after["step_s"], place)
        out.append(row)
    return out


def advice(loops, a, b, listed, step_b, place):
    if not any(note.startswith("The first row is the change") for note in listed["notes"]):
        return {"given": False}
    first = listed["predictions"][0]
    job = followed(a, first["options"])
    if job is None:
        return {"given": True, "options": first["options"]}
    step = step_b if job == b else loops.what_if(loops.record(job, place + first["options"].replace(" ", ""))).get("step_s")
    return {"given": True, "options": first["options"], "predicted": first["step_s"], "step": step}


def spread_of_runs(rows):
    """How much the means of runs of one job differ, as a part of them: by whether PyTorch trains."""
    steps = {}
    for row in rows:
        for key in ("a", "b"):
            if key in row:
                steps.setdefault(row["jobs"][key], []).append(math.log(row[key]))
    spread = {}
    for torch in (False, True):
        of = [logs for job, logs in steps.items() if job.torch == torch and len(logs) > 1]
        degrees = sum(len(logs) - 1 for logs in of)
        squares = sum(statistics.variance(logs) * (len(logs) - 1) for logs in of)
        spread[torch] = math.sqrt(squares / degrees) if degrees else 0
    return spread


def half_width(row):
    return (row["interval"][1] - row["interval"][0]) / 2 / row["predicted"]


def summary(rows):
    spread = spread_of_runs(rows)
    print(f"\nmeans of runs of equal jobs differ by {spread[False]:.1%} (the trainer) and {spread[True]:.1%} (PyTorch)")
    good = [row for row in rows if "predicted" in row]
    if not good:
        return
    rounds = {}
    for row in rows:
        rounds.setdefault(row["loop"], []).extend([row["b"]] if "b" in row else [])
    for row in good:
        measured = rounds[row["loop"]]
        row["own_b"], row["b"] = row["b"], statistics.geometric_mean(measured)
        row["e"] = row["predicted"] / row["b"] - 1
        row["moved"] = row["a"] / row["b"] - 1
        row["se_b"] = spread[row["jobs"]["b"].torch] / math.sqrt(len(measured))
        row["se"] = math.hypot(spread[row["jobs"]["a"].torch], row["se_b"])
    root = lambda values: math.sqrt(max(0, statistics.fmean(values)))
    print(f"\n{'change':33} {'n':>3} {'rms e':>7} {'mean e':>7} {'SE':>6} {'rms moved':>9} {'intervals':>9} {'hold':>5} "
          f"{'half':>6}")
    for change in [*CHANGES, None]:
        some = [row for row in good if change in (None, row["change"])]
        if not some:
            continue
        intervals = [row for row in some if row["interval"]]
        hold = [row["interval"][0] <= row["b"] <= row["interval"][1] for row in intervals]
        half = [half_width(row) for row in intervals]
        print(f"{change or 'all':33} {len(some):3} {root([row['e']**2 - row['se']**2 for row in some]):7.1%} "
              f"{statistics.fmean(row['e'] for row in some):+7.1%} {root([row['se']**2 for row in some]):6.1%} "
              f"{root([row['moved']**2 for row in some]):9.1%} {len(intervals):9} "
              f"{sum(hold) / max(len(hold), 1):5.0%} {statistics.median(half) if half else 0:6.1%}")
    of_loops = {True: {}, False: {}}  # by whether PyTorch trains
    for row in good:
        errors = of_loops[row["jobs"]["b"].torch].setdefault(row["loop"], [])
        errors.append(math.log(row["predicted"] / row["own_b"]))
    means = []
    for loops in of_loops.values():
        several = [errors for errors in loops.values() if len(errors) > 1]
        se = root([statistics.variance(errors) / len(errors) for errors in several]) if several else 0
        means += [(statistics.fmean(errors), se) for errors in several]
    if means:
        print(f"\nmeans over the rounds, SE from their differences: √mean(e² − SE²) "
              f"{root([e**2 - se**2 for e, se in means]):.1%}, "
              f"{sum(abs(e) <= max(0.1, 2 * se) for e, se in means)} of {len(means)} loops within max(10 %, 2 SE)")
    near = [abs(row["e"]) <= max(0.1, 2 * row["se"]) for row in good]
    near_b = [abs(row["e"]) <= max(0.1, 2 * row["se_b"]) for row in good]
    print(f"with the SE of B alone: {root([row['e']**2 - row['se_b']**2 for row in good]):.1%}, "
          f"within max(10 %, 2 SE): {sum(near_b) / len(near_b):.0%}")
    widths = [half_width(row) / max(0.05, 2 * row["se"]) for row in good if row["interval"]]
    if widths:
        print(f"median half width ÷ max(5 %, 2 SE): {statistics.median(widths):.2f}")
    large = [row for row in good if abs(row["b"] / row["a"] - 1) >= 0.1]
    print(f"\n{len(good)} of {len(rows)} predicted; within max(10 %, 2 SE): {sum(near) / len(near):.0%}; "
          f"{len(large)} change the step by 10 % or more, error ÷ that of no change "
          f"{root([row['e']**2 for row in large]) / max(root([row['moved']**2 for row in large]), 1e-9):.2f}")
    advised = [row for row in rows if "advice" in row]
    tried = [row for row in advised if row["advice"].get("step")]
    faster = [math.log(row["a"] / row["advice"]["step"]) > 2 * math.sqrt(2) * spread[row["jobs"]["a"].torch] for row in tried]
    print(f"advice in {sum(row['advice']['given'] for row in advised)} of {len(advised)} runs with a remedy of 5 % or more; "
          f"followed in {len(tried)}, faster by more than 2 SE in {sum(faster)}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("paceline")
    parser.add_argument("trainer")
    parser.add_argument("loops", nargs="*")
    parser.add_argument("--torch", dest="python")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--settings", choices=["learn", "judge", "all"], default="judge")
    parser.add_argument("--runs", type=pathlib.Path)
    arguments = parser.parse_intermixed_args()
    jobs = {name: job for kind, of in SETTINGS.items() if arguments.settings in (kind, "all") for name, job in of.items()}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        loops = Loops(arguments.paceline, arguments.trainer, arguments.python, arguments.iterations,
                      arguments.runs or pathlib.Path(folder))
        for change, (which, *_) in CHANGES.items():
            for name, job in jobs.items():
                if which not in ("all", "torch" if job.torch else "ours") or (job.torch and not arguments.python):
                    continue
                if arguments.loops and not {change, f"{name}:{change}", name} & set(arguments.loops):
                    continue
                for row in loop(loops, name, job, change, arguments.rounds):
                    rows.append(row)
                    text = row.get("error") or "predicted {:.1f} ms {}".format(
                        1e3 * row["predicted"], "({:.1f} to {:.1f})".format(
                            1e3 * row["interval"][0], 1e3 * row["interval"][1]) if row["interval"] else "")
                    print(f"{row['loop']:45} {1e3 * row.get('a', 0):7.1f} → {1e3 * row.get('b', 0):7.1f} ms, {text} "
                          f"{100 * (row['predicted'] / row['b'] - 1) if 'predicted' in row else 0:+.1f} % "
                          f"{row.get('advice', '')}", flush=True)
    summary(rows)


if __name__ == "__main__":
    main()
