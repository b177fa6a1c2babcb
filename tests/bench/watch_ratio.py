#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: watch_ratio.py PACELINE [--pairs 12] [--ranks 2] [--iterations 150] [--interval 2] [-- TRAINER OPTIONS]

Whether a job is slower while `paceline watch` follows it. Runs the recorded trainer in pairs, one run of each pair with a
watch on a pseudo-terminal beside it, in changing order, and prints the ratio of the median steps, watched ÷ not watched:
the geometric mean over the pairs with its 95 % t interval of the logarithm. Exit status 1 if the interval does not hold 1.
For an idle machine. With --null neither run is watched, which shows what the method itself gives.
"""
import argparse
import json
import math
import os
import pty
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading

T975 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110,
        2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045]
TRAINER = ["--synthetic", "--image-size", "32", "--model", "resnet18", "--width", "0.25", "--batch-size", "16", "--threads", "1",
           "--warmup", "none"]


def start_watch(arguments, run):
    main, other = pty.openpty()
    process = subprocess.Popen([arguments.paceline, "watch", "--interval", str(arguments.interval), run], stdin=other, stdout=other,
                               env=dict(os.environ, TERM="xterm"))
    os.close(other)

    def drain():
        try:
            while os.read(main, 65536):
                pass
        except OSError:
            pass

    threading.Thread(target=drain, daemon=True).start()
    return process


def step_seconds(arguments, directory, watched):
    run = os.path.join(directory, "run")
    shutil.rmtree(run, ignore_errors=True)
    log = os.path.join(directory, "log.jsonl")
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    watch = start_watch(arguments, run) if watched else None
    options = arguments.options or TRAINER
    subprocess.run(["mpirun", "--bind-to", "none", "-n", str(arguments.ranks), arguments.paceline, "record", "-o", run, "--",
                    os.path.join(os.path.dirname(arguments.paceline), "paceline-train"), *options, "--iterations",
                    str(arguments.iterations), "--log", log], env=environment, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    if watch is not None:
        try:
            watch.wait(60)  # it ends with the job
        except subprocess.TimeoutExpired:
            watch.send_signal(signal.SIGTERM)
            sys.exit("watch did not end with the job")
    with open(log, encoding="utf-8") as file:
        steps = [entry["seconds"] for entry in map(json.loads, file) if entry["event"] == "iteration"]
    return statistics.median(steps[len(steps) // 10:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("paceline")
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=150)
    parser.add_argument("--interval", type=float, default=2)
    parser.add_argument("--null", action="store_true")
    arguments, arguments.options = parser.parse_args(sys.argv[1:sys.argv.index("--")] if "--" in sys.argv else None), \
        sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else []
    if not 2 <= arguments.pairs <= len(T975) + 1:
        sys.exit(f"--pairs: give 2 to {len(T975) + 1}")
    logs = []
    with tempfile.TemporaryDirectory(prefix="paceline-watch-ratio-") as directory:
        step_seconds(arguments, directory, False)  # warms the machine up
        for pair in range(arguments.pairs):
            seconds = {}
            for watched in ((False, True) if pair % 2 == 0 else (True, False)):
                seconds[watched] = step_seconds(arguments, directory, watched and not arguments.null)
            logs.append(math.log(seconds[True] / seconds[False]))
            print(f"pair {pair + 1}: {1e3 * seconds[False]:.2f} ms alone, {1e3 * seconds[True]:.2f} ms watched, "
                  f"ratio {math.exp(logs[-1]):.4f}", flush=True)
    mean, error = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs)) * T975[len(logs) - 2]
    low, high = math.exp(mean - error), math.exp(mean + error)
    print(f"step watched ÷ alone: {math.exp(mean):.4f} (95 %: {low:.4f}–{high:.4f}), {len(logs)} pairs")
    return 0 if low <= 1 <= high else 1


if __name__ == "__main__":
    sys.exit(main())
