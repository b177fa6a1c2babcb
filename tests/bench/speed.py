#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast the trainer is, against oneDNN's own ceiling and against PyTorch, in one run on one machine.

In rounds: every program takes a few steps, then the next, so that the machine's drift meets all alike. Printed are the
medians over all steps of all rounds, and of each ratio the median over the rounds and its range.

  resnet50   ResNet-50, 224 pixels, batch 16, fp32: trainer, ceiling_bench, PyTorch (channels_last)
  vgg16      VGG-16 for CIFAR, batch 64: trainer, PyTorch
  ranks      the same ResNet-50 on ranks of one thread, 16 images together: trainer, PyTorch's DDP over gloo
  bf16       ResNet-50 in bf16, against PyTorch's autocast: only where the processor and the build have it
  allreduce  bench-allreduce on 2 and 4 ranks: ring and halving_doubling against the MPI library's

resnet50 and vgg16 also measure the seconds from the start of the program to its first step, and the evaluation.

PyTorch's figures need a Python with torch, named by PACELINE_TORCH_PYTHON; without it they are left out.

Each ratio has a target for each instruction set (TARGETS; --target NAME=RATIO sets another). If a median is below its
target, the status is 1.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
THREADS = 2
# Name → what is compared, and the least that its ratio of speeds may be with AVX2, with AVX-512 and with AMX.
TARGETS = {
    "resnet50-ceiling": ("ResNet-50: trainer ÷ oneDNN ceiling", (0.92, 0.92, 0.92)),
    "resnet50-pytorch": ("ResNet-50: trainer ÷ PyTorch", (1.3, 1.6, 1.6)),
    "resnet50-start": ("ResNet-50, start-up: PyTorch ÷ trainer", (1.0, 1.0, 1.0)),
    "resnet50-evaluation": ("ResNet-50, evaluation: trainer ÷ PyTorch", (1.0, 1.0, 1.0)),
    "vgg16-pytorch": ("VGG-16, CIFAR: trainer ÷ PyTorch", (1.3, 1.8, 1.8)),
    "vgg16-start": ("VGG-16, CIFAR, start-up: PyTorch ÷ trainer", (1.0, 1.0, 1.0)),
    "vgg16-evaluation": ("VGG-16, CIFAR, evaluation: trainer ÷ PyTorch", (1.0, 1.0, 1.0)),
    "ranks-one": ("2 ranks × 1 thread ÷ 1 rank × 2", (0.95, 0.97, 0.97)),
    "ranks-pytorch": ("2 ranks × 1 thread ÷ PyTorch DDP, gloo", (1.4, 1.5, 1.5)),
    "bf16-ceiling": ("ResNet-50, bf16: trainer ÷ oneDNN ceiling", (0.92, 0.92, 0.92)),
    "bf16-pytorch": ("ResNet-50, bf16: trainer ÷ PyTorch autocast", (1.3, 1.3, 2.0)),
    "allreduce": ("allreduce, {ranks} ranks, {size} MiB: {name} ÷ mpi", (1.0, 1.0, 1.0)),
}
# model, pixels, batch of all ranks, steps a round
RESNET = ("resnet50", 224, 16, 3)
VGG = ("vgg16", 32, 64, 8)
EVALUATED = 2  # batches


def environment():
    """Open MPI in containers, as root, with more ranks than cores; one setting of threads for all."""
    own = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
           "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_plm_rsh_agent": "", "GLOO_SOCKET_IFNAME": "lo"}
    return own | dict(os.environ) | {"OMP_NUM_THREADS": str(THREADS)}


def fail(message):
    sys.exit(f"speed.py: {message}")


def start(command):
    started = {"PACELINE_BENCH_STARTED": repr(time.time())}  # torch_step.py counts from here
    return subprocess.Popen([str(word) for word in command], env=environment() | started, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


class Watched:
    """The lines of a log with the seconds after which each was there, read while the program writes it."""

    def __init__(self, log):
        self.log, self.begin, self.lines, self.size = log, time.monotonic(), [], 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        last = False
        while not last:
            last = self.ended.wait(0.01)
            if not self.log.exists() or self.log.stat().st_size == self.size:
                continue
            now = time.monotonic() - self.begin
            text = self.log.read_text()
            whole = text[:text.rfind("\n") + 1]
            self.size = len(whole.encode())
            self.lines += [(now, json.loads(line)) for line in whole.splitlines()[len(self.lines):]]

    def finish(self):
        self.ended.set()
        self.thread.join()
        return self.lines


def start_and_evaluation(lines):
    """Seconds before the first step, and images/s of the evaluation behind the last one; NaN if there is none."""
    steps = [(at, line) for at, line in lines if line["event"] == "iteration"]
    before = steps[0][0] - steps[0][1]["seconds"]
    evaluated = [(at, line) for at, line in lines if line["event"] == "epoch" and line.get("test_images")]
    if not evaluated or evaluated[-1][0] <= steps[-1][0]:
        return before, float("nan")
    return before, evaluated[-1][1]["test_images"] / (evaluated[-1][0] - steps[-1][0])


def finish(process):
    """Its standard output, and the most memory it held, in MiB."""
    out, error = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        fail(f"{' '.join(process.args)} ended with status {process.returncode}:\n{error.strip()[-2000:]}")
    return out, usage.ru_maxrss / 2**10


class Programs:
    def __init__(self, build, torch_python):
        self.train, self.ceiling = build / "bin/paceline-train", build / "tests/ceiling_bench"
        self.torch_python = torch_python

    def ours(self, case, ranks=1, dtype="f32"):
        """Seconds of each step but the first, and facts: memory, start-up, first step and evaluation."""
        model, pixels, batch, steps = case
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log.jsonl"
            launcher = ["mpirun", "--bind-to", "none", "-n", ranks] if ranks > 1 else []
            watched = Watched(log)
            try:
                out = finish(start([*launcher, self.train, "--synthetic", "--model", model, "--image-size", pixels,
                                    "--classes", 256 if pixels > 64 else 10, "--batch-size", batch // ranks,
                                    "--train-images", batch * (steps + 1), "--test-images", EVALUATED * batch,
                                    "--eval-every", 0, "--iterations", steps + 1, "--threads", THREADS // ranks,
                                    "--dtype", dtype, "--lr", 0.001, "--log", log]))
            finally:
                lines = watched.finish()
        seconds = [line["seconds"] for _, line in lines if line["event"] == "iteration"]
        before, evaluation = start_and_evaluation(lines)
        return seconds[1:], {"peak_mib": out[1], "start_s": before, "first_step_s": seconds[0],
                             "evaluation_images_per_s": evaluation}

    def onednn(self):
        """Its version and the best instructions that it may use."""
        out, _ = finish(start([self.ceiling, "about"]))
        return json.loads(out)

    def own_ceiling(self, case, dtype="f32"):
        out, _ = finish(start([self.ceiling, *case, dtype]))
        return json.loads(out)["seconds"], {}

    def torch(self, case, ranks=1, dtype="f32"):
        model, pixels, batch, steps = case
        with tempfile.TemporaryDirectory() as folder:
            command = [self.torch_python, HERE / "torch_step.py", model, pixels, batch // ranks, steps, THREADS // ranks,
                       "--evaluate", EVALUATED]
            if dtype == "bf16":
                command.append("--bf16")
            if ranks > 1:
                command += ["--store", f"{folder}/store", "--ranks", ranks]
            processes = [start([*command, *(["--rank", rank] if ranks > 1 else [])]) for rank in range(ranks)]
            outs = [finish(process)[0] for process in processes]
        result = json.loads(outs[0].splitlines()[-1])  # gloo prints lines of its own
        return result.pop("seconds"), result

    def takes_bf16(self):
        probe = subprocess.run([self.train, "--synthetic", "--dtype", "bf16", "--width", "0.125", "--train-images", "4",
                                "--batch-size", "4", "--iterations", "1", "--test-images", "1"], env=environment(),
                               capture_output=True, text=True)
        return probe.returncode == 0, probe.stderr.strip()


class Case:
    """What is measured side by side: name → seconds of the steps, round by round."""

    def __init__(self, title, shape, runs):
        self.title, self.images, self.runs = title, shape[2], runs
        self.seconds = {name: [] for name in runs}
        self.facts = {name: {} for name in runs}  # key → a value for each round

    def round(self, number):
        names = list(self.runs)
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            seconds, facts = self.runs[name]()
            self.seconds[name].append(seconds)
            for key, value in facts.items():
                self.facts[name].setdefault(key, []).append(value)

    def rate(self, name):
        return self.images / statistics.median(second for seconds in self.seconds[name] for second in seconds)

    def ratio(self, name, other):
        """How many times as fast `name` is as `other`: median over the rounds, least, most."""
        ratios = [statistics.median(b) / statistics.median(a)
                  for a, b in zip(self.seconds[name], self.seconds[other])]
        return statistics.median(ratios), min(ratios), max(ratios)

    def ratio_of_facts(self, key, name, other):
        """The same for a fact: its value in the runs of `name` ÷ its value in those of `other`."""
        ratios = [a / b for a, b in zip(self.facts[name][key], self.facts[other][key])]
        return statistics.median(ratios), min(ratios), max(ratios)


def allreduce(programs, ranks):
    """{(bytes, communicator): microseconds}; medians of 20, one after the other in each iteration."""
    out, _ = finish(start(["mpirun", "--bind-to", "none", "-n", ranks, programs.train, "bench-allreduce", "--sizes",
                           "25M,100M", "--communicators", "mpi,ring,halving_doubling", "--iterations", 20]))
    rows = [line.split() for line in out.splitlines()]
    return {(int(row[0]), row[2]): float(row[3]) for row in rows if len(row) == 7 and row[0].isdigit()}


def ratios_of(cases, reduced, targets):
    """(what, median, least, most, target)"""
    rows = []
    for key, case, name, other in (("resnet50-ceiling", "resnet50", "trainer", "ceiling"),
                                   ("resnet50-pytorch", "resnet50", "trainer", "PyTorch"),
                                   ("vgg16-pytorch", "vgg16", "trainer", "PyTorch"),
                                   ("ranks-one", "ranks", "2 ranks × 1", "1 rank × 2"),
                                   ("ranks-pytorch", "ranks", "2 ranks × 1", "DDP 2 × 1"),
                                   ("bf16-ceiling", "bf16", "trainer", "ceiling"),
                                   ("bf16-pytorch", "bf16", "trainer", "PyTorch")):
        if case in cases and name in cases[case].runs and other in cases[case].runs:
            rows.append((TARGETS[key][0], *cases[case].ratio(name, other), targets[key]))
    for case in ("resnet50", "vgg16"):
        for what, key, name, other in (("start", "start_s", "PyTorch", "trainer"),
                                       ("evaluation", "evaluation_images_per_s", "trainer", "PyTorch")):
            if case in cases and all(key in cases[case].facts.get(run, {}) for run in (name, other)):
                target = f"{case}-{what}"
                rows.append((TARGETS[target][0], *cases[case].ratio_of_facts(key, name, other), targets[target]))
    for ranks, times in reduced.items():
        for size in sorted({size for size, _ in times}):
            for name in ("ring", "halving_doubling"):
                ratio = times[size, "mpi"] / times[size, name]
                what = TARGETS["allreduce"][0].format(ranks=ranks, size=size >> 20, name=name)
                rows.append((what, ratio, ratio, ratio, targets["allreduce"]))
    return rows


def below(rows):
    """Returns the names of the ratios that miss their targets. A ratio that is NaN misses its target."""
    return [what for what, median, _, _, target in rows if not median >= target]


def targets_of(words, instructions):
    """The targets with these instructions, some replaced by NAME=RATIO."""
    column = 2 if "AMX" in instructions else 1 if instructions.startswith("AVX512") else 0
    targets = {key: of_instructions[column] for key, (_, of_instructions) in TARGETS.items()}
    for word in words:
        name, _, ratio = word.partition("=")
        if name not in targets:
            raise ValueError(f"--target: no '{name}'; there are {', '.join(targets)}")
        try:
            targets[name] = float(ratio)
        except ValueError:
            raise ValueError(f"--target {name}: '{ratio}' is not a number") from None
    return targets


def processor():
    with open("/proc/cpuinfo") as file:
        return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "unknown")


def memory_of(cases):
    for name in ("resnet50", "vgg16"):
        facts = cases[name].facts if name in cases else {}
        if facts.get("trainer") and facts.get("PyTorch"):
            yield (name, max(facts["trainer"]["peak_mib"]), max(facts["PyTorch"]["peak_mib"]),
                   max(facts["PyTorch"]["beyond_start_mib"]))


def report(cases, rows, machine):
    print(f"\n{machine['processor']}, {machine['cpus']} CPUs; oneDNN {machine['onednn']}, which may use "
          f"{machine['instructions']}; load before: {machine['load_before']:.2f}")
    print(f"{machine['rounds']} rounds in {machine['seconds']:.0f} s\n")
    for case in cases.values():
        for name in case.runs:
            print(f"{case.title + ', ' + name:<52} {case.rate(name):9.2f} images/s")
    for case in cases.values():
        for name, facts in case.facts.items():
            if "start_s" not in facts:
                continue
            before, first, evaluation = (statistics.median(facts[key])
                                         for key in ("start_s", "first_step_s", "evaluation_images_per_s"))
            print(f"{case.title + ', ' + name:<52} {before:9.2f} s before the first step, which takes {first:.2f} s; "
                  f"evaluation: {evaluation:.1f} images/s")
    print(f"\n{'ratio of speeds':<52} {'median':>9}   range          target")
    missed = below(rows)
    for what, median, least, most, target in rows:
        print(f"{what:<52} {median:9.2f}   {least:.2f} … {most:.2f}    {target:.2f}{'  below' if what in missed else ''}")
    for name, ours, theirs, beyond in memory_of(cases):
        print(f"\npeak memory, {name}: trainer {ours:.0f} MiB, PyTorch {theirs:.0f} MiB "
              f"({beyond:.0f} MiB of these beyond its libraries)", end="")
    print()


LOAD = os.getloadavg()[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4, help="default: %(default)s, some 8 minutes on two slow cores")
    parser.add_argument("--only", default="resnet50,vgg16,ranks,bf16,allreduce", help="default: %(default)s")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="default: %(default)s")
    parser.add_argument("--target", action="append", default=[], metavar="NAME=RATIO",
                        help="another target than that of TARGETS; again for each")
    parser.add_argument("--json", type=pathlib.Path, help="file for all figures")
    o = parser.parse_args()
    only = o.only.split(",")
    if unknown := set(only) - {"resnet50", "vgg16", "ranks", "bf16", "allreduce"}:
        parser.error(f"--only: no {', '.join(sorted(unknown))}")
    torch_python = os.environ.get("PACELINE_TORCH_PYTHON")
    programs = Programs(o.build, torch_python)
    for program in (programs.train, programs.ceiling):
        if not program.is_file():
            parser.error(f"there is no {program}: cmake --build {o.build} --target paceline-train ceiling_bench")
    about = programs.onednn()
    try:
        targets = targets_of(o.target, about["instructions"])
    except ValueError as error:
        parser.error(str(error))
    if not torch_python:
        print("PACELINE_TORCH_PYTHON is not set: nothing is compared with PyTorch", file=sys.stderr)

    def with_torch(runs, name, run):
        return runs | {name: run} if torch_python else runs

    cases = {}
    if "resnet50" in only:
        runs = {"trainer": lambda: programs.ours(RESNET), "ceiling": lambda: programs.own_ceiling(RESNET)}
        cases["resnet50"] = Case("ResNet-50", RESNET, with_torch(runs, "PyTorch", lambda: programs.torch(RESNET)))
    if "vgg16" in only:
        runs = {"trainer": lambda: programs.ours(VGG)}
        cases["vgg16"] = Case("VGG-16", VGG, with_torch(runs, "PyTorch", lambda: programs.torch(VGG)))
    if "ranks" in only:
        runs = {"2 ranks × 1": lambda: programs.ours(RESNET, 2), "1 rank × 2": lambda: programs.ours(RESNET)}
        cases["ranks"] = Case("ResNet-50", RESNET, with_torch(runs, "DDP 2 × 1", lambda: programs.torch(RESNET, 2)))
    if "bf16" in only:
        takes, why = programs.takes_bf16()
        if takes:
            runs = {"trainer": lambda: programs.ours(RESNET, dtype="bf16"),
                    "ceiling": lambda: programs.own_ceiling(RESNET, "bf16")}
            cases["bf16"] = Case("ResNet-50 bf16", RESNET,
                                 with_torch(runs, "PyTorch", lambda: programs.torch(RESNET, dtype="bf16")))
        else:
            print(f"bf16 is left out: {why}", file=sys.stderr)

    began = time.monotonic()
    for number in range(o.rounds):
        for case in cases.values():
            case.round(number)
        print(f"round {number + 1} of {o.rounds}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    reduced = {ranks: allreduce(programs, ranks) for ranks in (2, 4)} if "allreduce" in only else {}
    machine = {"processor": processor(), "cpus": os.cpu_count(), **about, "load_before": LOAD,
               "rounds": o.rounds, "seconds": time.monotonic() - began}
    rows = ratios_of(cases, reduced, targets)
    report(cases, rows, machine)
    if o.json:
        figures = {
            **machine,
            "steps": {name: {run: case.seconds[run] for run in case.runs} for name, case in cases.items()},
            "images_per_s": {name: {run: case.rate(run) for run in case.runs} for name, case in cases.items()},
            "facts": {name: case.facts for name, case in cases.items()},
            "ratios": [dict(zip(("what", "median", "least", "most", "target"), row)) for row in rows],
            "allreduce_us": {ranks: {f"{size} {name}": us for (size, name), us in times.items()}
                             for ranks, times in reduced.items()}}
        o.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if below(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
