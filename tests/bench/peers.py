#!/usr/bin/env python3
"""usage: peers.py [BUILD] [--rounds 9]

What a recorded NVTX range and a recorded MPI call cost, beside LTTng-UST (Debian: lttng-tools, liblttng-ust-dev; build
again after they were installed). All kinds take turns in each round, each in a process of its own (peers.c), so that the
ratios are of neighbours in time. BUILD is build/release. Prints ns with minimum, median and maximum over the rounds, and
the ratio Paceline ÷ LTTng. Exit status 1 if a profiler lost events, because lost events cost less.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from mpi_environment import MPI_ENVIRONMENT

# What one Zen 4 gave in November 2026; other machines give others.
REFERENCE = {"Paceline, NVTX range": "21 to 28", "Paceline, MPI_Allreduce, added": "48 to 66",
             "LTTng, pair of tracepoints": "171 to 175"}


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    load = os.getloadavg()[0]
    return f"{model[1] if model else os.uname().machine}, {os.cpu_count()} CPUs, Linux {os.uname().release}, load {load:.1f}"


def text_of(command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


class Lttng:
    """A session of LTTng with buffers that hold a burst. Starts the session daemon if none is running, and ends it then."""

    def __init__(self, folder):
        self.pid_file = folder / "sessiond.pid"
        self.output = folder / "lttng"
        self.name = f"paceline-peers-{os.getpid()}"
        self.quiet("lttng-sessiond", "--no-kernel", "--daemonize", "--pidfile", self.pid_file, check=False)
        self.quiet("lttng", "create", self.name, "--output", self.output)
        self.quiet("lttng", "enable-channel", "-u", "-s", self.name, "--subbuf-size", "4M", "--num-subbuf", "8", "bench")
        self.quiet("lttng", "enable-event", "-u", "-s", self.name, "-c", "bench", "paceline_peers:*")
        self.quiet("lttng", "start", self.name)

    @staticmethod
    def quiet(*command, check=True):
        subprocess.run(command, check=check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def fault(self, pairs):
        """What is wrong with the recording of that many pairs, whose events take more than 8 bytes each; None if nothing."""
        if any(map(int, re.findall(r"Discarded events: (\d+)", text_of(["lttng", "list", self.name])))):
            return "LTTng discarded events"
        self.quiet("lttng", "stop", self.name)  # writes what is in the buffers
        size = sum(file.stat().st_size for file in self.output.rglob("*") if file.is_file())
        return "LTTng did not record" if size < 16 * pairs else None

    def end(self):
        self.quiet("lttng", "destroy", self.name, check=False)
        try:
            os.kill(int(self.pid_file.read_text()), 15)
        except (OSError, ValueError):
            pass  # another one was running


def recorded_pairs(paceline, run, kind):
    events = json.loads(text_of([paceline, "info", "--format", "json", run]))["traces"][0]["events"]
    return events["mpi"] - 2 if kind == "mpi" else events["nvtx"]  # MPI_Init, MPI_Finalize


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[0].removeprefix("usage: "))
    parser.add_argument("build", nargs="?", default="build/release")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    build = pathlib.Path(arguments.build).resolve()
    program, paceline = build / "tests/peers", build / "bin/paceline"
    for needed in (program, paceline):
        if not needed.exists():
            sys.exit(f"peers.py: {needed} is missing; build the targets peers and paceline")

    print(machine())
    has_lttng = subprocess.run([program, "lttng"], stdout=subprocess.DEVNULL, env=dict(
        os.environ, LTTNG_UST_REGISTER_TIMEOUT="0")).returncode == 0 and shutil.which("lttng-sessiond")
    if not has_lttng:
        print("LTTng is not measured: install lttng-tools and liblttng-ust-dev, and build the target peers again")
    ns, faults, lttng_pairs = {}, [], []
    with tempfile.TemporaryDirectory(prefix="paceline-peers-") as place:
        folder = pathlib.Path(place)
        lttng = Lttng(folder) if has_lttng else None

        def measure(row, kind, recorded):
            run = folder / "run"
            command = [program, kind]
            if recorded:
                command = [paceline, "record", "-o", run, "--", *command]
            value, pairs = text_of(command, env=dict(MPI_ENVIRONMENT, OMPI_MCA_plm_rsh_agent="")).split()
            if recorded and recorded_pairs(paceline, run, kind) != int(pairs):
                faults.append(f"Paceline lost events of {kind}")
            if "lttng" in kind:
                lttng_pairs.append(int(pairs))
            shutil.rmtree(run, ignore_errors=True)
            ns.setdefault(row, []).append(float(value))

        kinds = [("Paceline, NVTX range", "ascii", True), ("Paceline, NVTX range, registered string", "registered", True),
                 ("no tool, NVTX range", "ascii", False), ("no tool, MPI_Allreduce", "mpi", False),
                 ("Paceline, MPI_Allreduce", "mpi", True)]
        if lttng:
            kinds += [("LTTng, pair of tracepoints", "lttng", False),
                      ("LTTng, pair around MPI_Allreduce", "mpi-lttng", False)]
        try:
            for number in range(arguments.rounds):
                for kind in kinds if number % 2 == 0 else kinds[::-1]:
                    measure(*kind)
            if lttng and (fault := lttng.fault(sum(lttng_pairs))):
                faults.append(fault)
        finally:
            if lttng:
                lttng.end()

    def differences(row):
        return [with_tool - without for with_tool, without in zip(ns[row], ns["no tool, MPI_Allreduce"])]

    ns["Paceline, MPI_Allreduce, added"] = differences("Paceline, MPI_Allreduce")
    if lttng:
        ns["LTTng, MPI_Allreduce, added"] = differences("LTTng, pair around MPI_Allreduce")
    print(f"\n{'ns':42}{'min':>8}{'median':>8}{'max':>8}   a Zen 4 gave")
    for row, values in ns.items():
        print(f"{row:42}{min(values):8.1f}{statistics.median(values):8.1f}{max(values):8.1f}   {REFERENCE.get(row, '')}")
    if lttng:
        print(f"\n{'Paceline ÷ LTTng':42}{'min':>8}{'median':>8}{'max':>8}")
        for name, ours, theirs in (("range", "Paceline, NVTX range", "LTTng, pair of tracepoints"),
                                   ("added to MPI_Allreduce", "Paceline, MPI_Allreduce, added",
                                    "LTTng, MPI_Allreduce, added")):
            ratios = [a / b for a, b in zip(ns[ours], ns[theirs])]
            print(f"{name:42}{min(ratios):8.2f}{statistics.median(ratios):8.2f}{max(ratios):8.2f}")
    for fault in sorted(set(faults)):
        print(f"peers.py: {fault}: its figures are too low; run it on an idle machine")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
