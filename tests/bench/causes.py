#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: causes.py PACELINE PACELINE-TRAIN [CAUSE…]

Runs on two ranks with an injected cause of lost time, PyTorch's DistributedDataParallel over gloo and paceline-train over
MPI, and prints what the report says beside what was injected: the verdict, the cause, the rank and the phase, and the lost
seconds by cause. The truth about CPUs comes from /proc/self/schedstat of the ranks.

Run it with an interpreter that has torch, such as Debian's /usr/bin/python3, as root (for the control group). ITERATIONS
(150), REPEATS (1) and SAMPLE (the recorder's own rate; else the value of --sample) in the environment.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from mpi_environment import MPI_ENVIRONMENT

HERE = pathlib.Path(__file__).resolve().parent
ITERATIONS = os.environ.get("ITERATIONS", "150")
CGROUP = pathlib.Path("/sys/fs/cgroup/cpu/paceline-causes")

GROUPS = {"cpu": pathlib.Path("/sys/fs/cgroup/cpu/paceline-causes"), "blkio": pathlib.Path("/sys/fs/cgroup/blkio/paceline-causes")}

# By cause: the key of the cause in the report, the rank that is late (None: no rank is), phases that are right, and what
# the sentences about the cause must name.
EXPECTED = {
    "none": (None, None, (), ""),
    "few_cpus": ("no_cpu", None, (), "more CPUs for the ranks, whose own threads used"),
    "other_program": ("no_cpu", None, (), "program compiler"),
    "one_core": ("no_cpu", None, (), "CPUs of its own for each rank"),
    "throttled": ("throttled", None, (), "control group"),
    "gc_pause": ("garbage_collection", 1, ("other", "preprocess"), "collected garbage"),
    "slow_getitem": ("blocked", 1, ("preprocess",), "__getitem__|Loader::next|range preprocess"),
    "sleep": ("blocked", 1, ("other", "forward"), "slow_function|inject_delay"),
    "slow_file": ("input_output", 1, ("preprocess",), "SlowFile.*slow-1"),
    "fsync": ("input_output", None, (), "write_and_sync.*fsync"),
    "python_function": ("computing", 1, ("other",), "slow_function"),
    "held_lock": ("blocked", 1, (), "hold_the_lock"),
    "unequal_batches": ("computing", 1, ("forward", "backward", "preprocess"), "unequal batches"),
    "throttled_link": ("moving_bytes", None, (), "transfer"),
    "page_faults": ("page_faults", 1, ("other",), "MappedFile.touch"),
}
# The faults of the trainer that make the same cause.
OURS = {
    "none": [],
    "other_program": [],
    "one_core": [],
    "throttled": [],
    "throttled_link": [],
    "slow_getitem": ["--fault", "slow-loader=1:50"],
    "sleep": ["--fault", "slow-rank=1:50"],
}
SLOW_FIRST = "(iterations? [0-9, andto–]+(more )?|[0-9]+ iterations )took"
SAMPLE = ["--sample", os.environ["SAMPLE"]] if "SAMPLE" in os.environ else []


class Injection:
    """What happens outside of the ranks while they run."""

    def __init__(self, cause, folder):
        self.cause, self.folder, self.processes = cause, folder, []

    def prefix(self):
        if self.cause == "one_core":
            return ["taskset", "-c", "0"]
        if self.cause == "throttled":
            GROUPS["cpu"].mkdir(exist_ok=True)
            (GROUPS["cpu"] / "cpu.cfs_period_us").write_text("100000")
            (GROUPS["cpu"] / "cpu.cfs_quota_us").write_text("80000")
            (GROUPS["cpu"] / "cpu.shares").write_text("200000")  # before the other programs of the machine
            return ["sh", "-c", f'echo $$ > {GROUPS["cpu"]}/cgroup.procs && exec "$@"', "sh"]
        if self.cause == "throttled_link":
            link = "ip link set lo up && tc qdisc add dev lo root tbf rate 200mbit burst 256k limit 64mb"
            return ["unshare", "-n", "sh", "-c", link + ' && exec "$@"', "sh"]
        return []

    def __enter__(self):
        if self.cause == "other_program":
            program = shutil.copy("/bin/sh", self.folder + "/compiler")
            for _ in range(os.cpu_count() * 2):
                self.processes.append(subprocess.Popen([program, "-c", "while :; do :; done"]))
        if self.cause == "slow_file":  # rank 1 enters the group
            GROUPS["blkio"].mkdir(exist_ok=True)
            device = os.stat(self.folder).st_dev
            (GROUPS["blkio"] / "blkio.throttle.read_bps_device").write_text(
                f"{os.major(device)}:{os.minor(device)} {4 << 20}")
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.send_signal(signal.SIGKILL)
            process.wait()
        for group in GROUPS.values():
            for _ in range(50 if group.exists() else 0):
                try:
                    group.rmdir()
                    break
                except OSError:
                    time.sleep(0.1)


def run(program, cause, paceline, train, folder):
    trace = f"{folder}/trace"
    more = {"CAUSES_STORE": f"file://{folder}/store", "CAUSES_FOLDER": folder, "OMP_NUM_THREADS": "1"}
    if cause == "throttled_link":
        more |= {"OMPI_MCA_btl": "tcp,self", "OMPI_MCA_btl_tcp_if_include": "lo"}
    with Injection(cause, folder) as injection:
        command = injection.prefix() + ["mpirun", "--bind-to", "none", "--oversubscribe", "-n", "2"]
        command += [paceline, "record", "-o", trace, *SAMPLE]
        if program == "ddp":
            command += ["--pytorch", "--", sys.executable, str(HERE / "causes_ddp.py"), cause, ITERATIONS]
        else:
            command += ["--", train, "--threads", "1", "--synthetic", "--image-size", "32", "--train-images", "512",
                        "--test-images", "4", "--batch-size", "4", "--eval-every", "0", "--width", "0.25", "--iterations",
                        str(2 * int(ITERATIONS)), *OURS[cause]]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=MPI_ENVIRONMENT | more)
    if done.returncode != 0:
        raise SystemExit(f"{program} {cause}: {done.stderr[-2000:]}")
    truth = [json.loads(one) for one in re.findall(r'\{"rank"[^}]*\}', done.stdout)]  # two may come on one line
    text = subprocess.run([paceline, "report", trace], check=True, stdout=subprocess.PIPE, text=True).stdout
    report = json.loads(subprocess.run([paceline, "report", "--format", "json", trace], check=True, stdout=subprocess.PIPE,
                                       text=True).stdout)
    return truth, text, report


def judged(cause, text, report, truth):
    """The rank, phase and cause that the report names; what is wrong with them; and the seconds lost to the cause."""
    # Ranks with more threads than the machine has CPUs lack them: what all threads of a rank waited says whether they do.
    if cause == "none" and truth and min(of["all_no_cpu_s"] / of["seconds"] for of in truth) > 0.1:
        cause = "few_cpus"
    one = report["runs"][0]
    causes = one.get("causes", {})
    lost = causes.get("lost_ns", {})
    # The rank that the verdict names: one that costs next to nothing beside another reason is a finding alone.
    in_verdict = re.search(r"\brank ([0-9]+) (?:on \S+ )?holds the others up", text.split("Seconds that more ranks")[0])
    slow = [of for of in one.get("lateness", {}).get("slow_ranks", []) if in_verdict and of["rank"] == int(in_verdict[1])]
    rank = slow[0]["rank"] if slow else None
    phase = slow[0].get("phase") if slow else None
    main = causes.get("main")
    slow_first = re.search(SLOW_FIRST, text.split("Seconds that more ranks")[0])
    cpu = main in ("no_cpu", "throttled") and not slow_first
    parts = {}
    if cpu:
        parts, named = lost, main
    elif slow and not slow_first:
        parts = next(of for of in one["per_rank"] if of["rank"] == rank)["causes"]["caused_ns"]
        named = max(parts, key=parts.get)
        if cause == "page_faults" and "waited for major page faults" in text:  # the kernel's work for them is computing
            named = "page_faults"
    elif "took" in text and "slow_iterations" in causes and re.search(SLOW_FIRST, text):
        parts = causes["slow_iterations"]["by_cause"]
        named = max(parts, key=parts.get)
        on_rank = re.search(r"iterations .*took .*, mostly .* on rank ([0-9]+)[.;]", text.split("Seconds that more ranks")[0])
        rank = int(on_rank[1]) if on_rank else None
    else:
        parts = lost
        named = main if main == "moving_bytes" and lost[main] > 0.25 * one["wall_ns"] else None
    key, late, phases, words = EXPECTED[cause]
    if cpu and late is not None and rank == late:  # the machine's other programs; the rank is named beside them
        of_rank = next(of for of in one["per_rank"] if of["rank"] == rank)["causes"]["caused_ns"]
        if max(of_rank, key=of_rank.get) == key and re.search(words, text):
            parts, named, cpu = of_rank, key, False
    wrong = [what for what, right in (("cause", named == key), ("rank", cpu or rank == late),
                                      ("phase", not phases or phase is None or phase in phases),
                                      ("words", re.search(words, text))) if not right]
    return named, rank, phase, wrong, parts.get(key, 0) / 1e9


def main():
    autogroup = pathlib.Path("/proc/self/autogroup")
    if autogroup.exists():  # before the other programs of the machine, which are no part of this
        os.setsid() if os.getpid() != os.getsid(0) else None
        autogroup.write_text("-15")
    paceline, train = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    wanted = sys.argv[3:] or [cause for cause in EXPECTED if cause != "few_cpus"]
    right = count = 0
    for cause in wanted:
        for program in ("ddp", "ours"):
            if program == "ours" and cause not in OURS:
                continue
            for _ in range(int(os.environ.get("REPEATS", "1"))):
                with tempfile.TemporaryDirectory() as folder:
                    truth, text, report = run(program, cause, paceline, train, folder)
                text = " ".join(text.split())
                named, rank, phase, wrong, of_cause = judged(cause, text, report, truth)
                right, count = right + (not wrong), count + 1
                lost = {key: round(ns / 1e9, 2) for key, ns in report["runs"][0].get("causes", {}).get("lost_ns", {}).items()}
                print(f"{'WRONG ' + ', '.join(wrong) if wrong else 'ok'}: {program} {cause}; named: {named}, rank {rank}, phase "
                      f"{phase}, {of_cause:.2f} s; lost s: {lost}; load {os.getloadavg()[0]:.1f}")
                if truth:
                    truth.sort(key=lambda of: of["rank"])
                    print("  injected s by rank:", [round(of["injected_s"], 2) for of in truth], "blocked s:",
                          [round(of["blocked_s"], 2) for of in truth], "without a CPU s:",
                          [round(of["no_cpu_s"], 2) for of in truth], "all threads:",
                          [round(of["all_no_cpu_s"], 2) for of in truth], "of", round(max(of["seconds"] for of in truth), 1))
                print("  " + text.split("Seconds that more ranks")[0])
                print("  " + " | ".join(re.findall("[0-9.]+ m?s: (?:Iteration|In collectives|The most)[^!·]*", text)), flush=True)
    print(f"{right} of {count} right")


if __name__ == "__main__":
    main()
