#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: causes.py PACELINE PACELINE-TRAIN [CAUSE…]

Runs on two ranks with an injected cause of lost time, PyTorch's DistributedDataParallel over gloo and paceline-train over
MPI, and prints what the report says beside what was injected: the verdict, the cause, the rank and the phase, and the lost
seconds by cause. The truth about CPUs comes from /proc/self/schedstat of the ranks.

Run it with an interpreter that has torch, such as Debian's /usr/bin/python3, as root (for the control group). ITERATIONS
(150) and REPEATS (1) in the environment.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from mpi_environment import MPI_ENVIRONMENT

HERE = pathlib.Path(__file__).resolve().parent
ITERATIONS = os.environ.get("ITERATIONS", "150")
CGROUP = pathlib.Path("/sys/fs/cgroup/cpu/paceline-causes")

# By cause: the key of the cause in the report, the rank that is late (None: no rank is), and phases that are right.
EXPECTED = {
    "none": (None, None, ()),
    "other_program": ("no_cpu", None, ()),
    "one_core": ("no_cpu", None, ()),
    "throttled": ("throttled", None, ()),
    "gc_pause": ("garbage_collection", 1, ("other", "preprocess")),
    "slow_getitem": ("blocked", 1, ("preprocess",)),
    "sleep": ("blocked", 1, ("other",)),
    "fsync": ("input_output", None, ()),
    "slow_file": ("input_output", 1, ("preprocess",)),
    "page_faults": ("page_faults", 1, ("other",)),
    "unequal_batches": ("computing", 1, ("forward", "backward", "preprocess")),
}
OURS = {
    "none": [],
    "other_program": [],
    "one_core": [],
    "throttled": [],
    "slow_getitem": ["--fault", "slow-loader=1:50"],
    "sleep": ["--fault", "slow-rank=1:50"],
}
# What a thread waits for is seen in samples only.
SAMPLED = ("fsync", "slow_file", "page_faults")
BUSY = "import time\nuntil = time.time() + 600\nwhile time.time() < until: pass"


class Injection:
    """What happens outside of the ranks while they run."""

    def __init__(self, cause):
        self.cause, self.processes = cause, []

    def prefix(self):
        if self.cause == "one_core":
            return ["taskset", "-c", "0"]
        if self.cause == "throttled":
            CGROUP.mkdir(exist_ok=True)
            (CGROUP / "cpu.cfs_period_us").write_text("100000")
            (CGROUP / "cpu.cfs_quota_us").write_text("80000")
            return ["sh", "-c", f'echo $$ > {CGROUP}/cgroup.procs && exec "$@"', "sh"]
        return []

    def __enter__(self):
        if self.cause == "other_program":
            for _ in range(os.cpu_count() * 2):
                self.processes.append(subprocess.Popen([sys.executable, "-c", BUSY]))
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.send_signal(signal.SIGKILL)
            process.wait()
        if self.cause == "throttled":
            for _ in range(50):
                try:
                    CGROUP.rmdir()
                    return
                except OSError:
                    time.sleep(0.1)


def run(program, cause, paceline, train, folder):
    trace = f"{folder}/trace"
    more = {"CAUSES_STORE": f"file://{folder}/store", "CAUSES_FOLDER": folder, "OMP_NUM_THREADS": "1"}
    with Injection(cause) as injection:
        command = injection.prefix() + ["mpirun", "--bind-to", "none", "--oversubscribe", "-n", "2"]
        command += [paceline, "record", "-o", trace, *(["--sample", "100"] if cause in SAMPLED else [])]
        if program == "ddp":
            command += ["--pytorch", "--", sys.executable, str(HERE / "causes_ddp.py"), cause, ITERATIONS]
        else:
            command += ["--", train, "--threads", "1", "--synthetic", "--image-size", "32", "--train-images", "512",
                        "--test-images", "4", "--batch-size", "4", "--eval-every", "0", "--width", "0.25", "--iterations",
                        ITERATIONS, *OURS[cause]]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=MPI_ENVIRONMENT | more)
    if done.returncode != 0:
        raise SystemExit(f"{program} {cause}: {done.stderr[-2000:]}")
    truth = [json.loads(one) for one in re.findall(r'\{"rank"[^}]*\}', done.stdout)]  # two may come on one line
    text = subprocess.run([paceline, "report", trace], check=True, stdout=subprocess.PIPE, text=True).stdout
    report = json.loads(subprocess.run([paceline, "report", "--format", "json", trace], check=True, stdout=subprocess.PIPE,
                                       text=True).stdout)
    return truth, text, report


def judged(cause, report):
    """The rank, phase and cause that the report names; and whether they are the injected ones."""
    one = report["runs"][0]
    causes = one.get("causes", {})
    slow = one.get("lateness", {}).get("slow_ranks", [])
    rank = slow[0]["rank"] if slow else None
    phase = slow[0].get("phase") if slow else None
    main = causes.get("main")
    cpu = main in ("no_cpu", "throttled")
    if cpu:
        named = main
    elif slow:
        parts = next(of for of in one["per_rank"] if of["rank"] == rank)["causes"]["caused_ns"]
        named = max(parts, key=parts.get)
    elif "slow_iterations" in causes:
        parts = causes["slow_iterations"]["by_cause"]
        named = max(parts, key=parts.get)
    else:
        named = None
    key, late, phases = EXPECTED[cause]
    right = named == key and (cpu or rank == late) and (not phases or phase is None or phase in phases)
    return named, rank, phase, right


def main():
    paceline, train = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    wanted = sys.argv[3:] or list(EXPECTED)
    right = count = 0
    for cause in wanted:
        for program in ("ddp", "ours"):
            if program == "ours" and cause not in OURS:
                continue
            for _ in range(int(os.environ.get("REPEATS", "1"))):
                with tempfile.TemporaryDirectory() as folder:
                    truth, text, report = run(program, cause, paceline, train, folder)
                named, rank, phase, is_right = judged(cause, report)
                right, count = right + is_right, count + 1
                lost = {key: round(ns / 1e9, 2) for key, ns in report["runs"][0].get("causes", {}).get("lost_ns", {}).items()}
                print(f"{'ok   ' if is_right else 'WRONG'} {program:5}{cause:16} named: {named}, rank {rank}, phase {phase}; "
                      f"lost s: {lost}")
                if truth:
                    truth.sort(key=lambda of: of["rank"])
                    print("      injected s by rank:", [round(of["injected_s"], 2) for of in truth], "without a CPU s:",
                          [round(of["no_cpu_s"], 2) for of in truth], "of", round(max(of["seconds"] for of in truth), 1))
                print("      " + "\n      ".join(text.strip().splitlines()[:12]), flush=True)
    print(f"{right} of {count} right")


if __name__ == "__main__":
    main()
