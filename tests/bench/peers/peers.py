#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: peers.py PACELINE [ROUNDS]       default: 7 rounds

What a range and an MPI call cost the program, recorded by Paceline and by LTTng-UST, in one run: each round measures all
of them in turn, and the medians over the rounds are printed with their least and greatest values. Needs mpicc, the NVTX
headers (NVTX_HOME, CUDA's folder or build/deps/nvtx) and, for LTTng, lttng-tools and liblttng-ust-dev; without these it
prints a line and leaves LTTng out.
"""
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
RANK = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def nvtx_headers():
    homes = [os.environ.get("NVTX_HOME"), os.environ.get("CUDA_HOME"), "/usr/local/cuda",
             str(HERE.parents[2] / "build/deps/nvtx")]
    for home in filter(None, homes):
        if pathlib.Path(home, "include/nvtx3/nvToolsExt.h").exists():
            return f"-I{home}/include"
    sys.exit("peers.py: no NVTX headers: run samples/setup.sh, or set NVTX_HOME")


def build(folder):
    """The program, and whether LTTng is in it."""
    common = ["mpicc", "-O2", nvtx_headers(), "-o", str(folder / "peers"), str(HERE / "peers.c")]
    provider = folder / "provider.c"
    provider.write_text("#define LTTNG_UST_TRACEPOINT_CREATE_PROBES\n#define LTTNG_UST_TRACEPOINT_DEFINE\n"
                        '#include "lttng_events.h"\n')
    if shutil.which("lttng-sessiond"):
        lttng = ["-DPEERS_LTTNG", f"-I{HERE}", str(provider), "-llttng-ust", "-ldl"]
        if subprocess.run(common + lttng, stderr=subprocess.DEVNULL).returncode == 0:
            return True
    print("LTTng is left out: install lttng-tools and liblttng-ust-dev")
    subprocess.run(common + ["-ldl"], check=True)
    return False


def measure(command, folder):
    ended = subprocess.run(command, cwd=folder, env={**os.environ, **RANK}, capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(f"peers.py: {' '.join(map(str, command))}: status {ended.returncode}: {ended.stderr}")
    return float(ended.stdout)


def under_lttng(folder):
    """One session for each measurement, as a user would trace a run."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    run = lambda *words: subprocess.run(["lttng", "-n", *words], **quiet).check_returncode()
    run("create", "paceline-peers", f"--output={folder / 'lttng'}")
    run("enable-channel", "--userspace", "--num-subbuf=8", "--subbuf-size=4M", "ranges")
    run("enable-event", "--userspace", "--channel=ranges", "paceline_peers:*")
    run("start")
    try:
        return measure([folder / "peers", "lttng"], folder)
    finally:
        run("destroy", "paceline-peers")
        shutil.rmtree(folder / "lttng", ignore_errors=True)


def main():
    paceline = pathlib.Path(sys.argv[1]).resolve()
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        has_lttng = build(folder)
        if has_lttng:
            subprocess.run(["lttng-sessiond", "--daemonize"], stderr=subprocess.DEVNULL)
        ways = {"range, no tool": lambda: measure([folder / "peers", "nvtx"], folder),
                "range, Paceline": lambda: recorded("nvtx"),
                "MPI_Allreduce, no tool": lambda: measure([folder / "peers", "mpi"], folder),
                "MPI_Allreduce, Paceline": lambda: recorded("mpi")}
        if has_lttng:
            ways["range, LTTng-UST"] = lambda: under_lttng(folder)

        def recorded(mode):
            shutil.rmtree(folder / "run", ignore_errors=True)
            return measure([paceline, "record", "-o", folder / "run", "--", folder / "peers", mode], folder)

        values = {way: [] for way in ways}
        for _ in range(rounds):
            for way, measured in ways.items():
                values[way].append(measured())
        if has_lttng:
            subprocess.run(["pkill", "lttng-sessiond"])
    print(f"{'':26}{'median':>9}{'least':>9}{'most':>9}   ns")
    for way, all_of in values.items():
        print(f"{way:26}{statistics.median(all_of):9.1f}{min(all_of):9.1f}{max(all_of):9.1f}")
    pairs = zip(values["MPI_Allreduce, Paceline"], values["MPI_Allreduce, no tool"])
    print(f"{'added to MPI_Allreduce':26}{statistics.median(a - b for a, b in pairs):9.1f}")
    if has_lttng:
        ratios = [a / b for a, b in zip(values["range, Paceline"], values["range, LTTng-UST"])]
        print(f"{'Paceline ÷ LTTng-UST':26}{statistics.median(ratios):9.2f}")


if __name__ == "__main__":
    main()
