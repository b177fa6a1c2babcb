#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: perfetto_speed.py PACELINE RUN|FILE.pftrace…

How fast Perfetto's protobuf traces are read: MB for each second of CPU time of `paceline info`, the median and the best of
ROUNDS (7, in the environment) in turns. A RUN is exported first (`--to perfetto`), and beside it stand the same events as
JSON (`--to chrome`). A small file is repeated up to 40 MB: one trace behind another is a trace.
"""
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

WANTED = 40 << 20


def repeated(source, target):
    content = source.read_bytes()
    with open(target, "wb") as file:
        for _ in range(max(1, -(-WANTED // len(content)))):
            file.write(content)


def exported(paceline, run, form, target):
    subprocess.run([paceline, "export", "--to", form, "-o", target, run], check=True, stdout=subprocess.DEVNULL)


def cpu_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    paceline = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for number, given in enumerate(map(pathlib.Path, sys.argv[2:])):
            target = pathlib.Path(folder, f"{number}.pftrace")
            if given.suffix == ".pftrace":
                repeated(given, target)
            else:
                exported(paceline, given, "perfetto", target)
                files[f"{given} as JSON"] = pathlib.Path(folder, f"{number}.json")
                exported(paceline, given, "chrome", files[f"{given} as JSON"])
            files[str(given)] = target
        seconds = {name: [] for name in files}
        for _ in range(int(os.environ.get("ROUNDS", "7"))):
            for name, file in files.items():
                seconds[name].append(cpu_seconds([paceline, "info", file]))
        for name, file in files.items():
            size = file.stat().st_size / 1e6
            print(f"{name}: {size:.0f} MB, {size / statistics.median(seconds[name]):.0f} MB/s of CPU time, "
                  f"at best {size / min(seconds[name]):.0f}")


if __name__ == "__main__":
    main()
