#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: damage.py PACELINE [--count N] [--seed N] [--jobs N] [--keep FOLDER] [--all] SAMPLE…

Damages traces of other tools in N ways each and gives each damaged one to `paceline info` and `paceline report --format
json`, and with --all those that can be read also to `paceline query` and `paceline export`. A SAMPLE is a trace file,
compressed or not, or the folder of an OTF2 archive or of Flight Recorder dumps. Each run must end within a time limit, by
itself, with at most 64 MB plus ten times the size of its input in memory. It must write JSON, or one line that names the
input with status 1. Of packed samples, every other variant damages the contents instead of the packed bytes.
The definitions of each OTF2 archive also make one whose files of events have several chunks, which is a sample as well.
Prints one line for each failure, and a summary for each sample. Exit status 1 after failures, 77 without samples.
"""
import argparse
import bz2
import concurrent.futures
import gzip
import io
import json
import lzma
import os
import pathlib
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import zipfile

BASE_MEMORY = 64 << 20
TIMES_THE_SIZE = 10
MACHINE_LIMIT = 6 << 30  # of address space, so that a failure does not take the machine along
TIME_LIMIT_S = 60  # machines that run tests are busy


def stretch(random, size, most):
    """A random stretch of at least one byte: its begin and end."""
    length = random.randint(1, max(1, min(most, size)))
    begin = random.randint(0, max(0, size - length))
    return begin, min(size, begin + length)


def flip_bytes(data, random):
    for _ in range(random.choice([1, 3, 20, 200])):
        data[random.randrange(len(data))] = random.randrange(256)


def flip_bits(data, random):
    for _ in range(random.choice([1, 5, 50])):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def truncate(data, random):
    del data[random.randrange(len(data)):]


def cut_out(data, random):
    begin, end = stretch(random, len(data), random.choice([10, 1000, len(data)]))
    del data[begin:end]


def zeros(data, random):
    begin, end = stretch(random, len(data), random.choice([8, 500, 50_000]))
    data[begin:end] = bytes(end - begin)


def swap(data, random):
    length = max(1, min(len(data) // 2, random.choice([4, 100, 5000, len(data) // 3])))
    first = random.randint(0, len(data) - 2 * length)
    second = random.randint(first + length, len(data) - length)
    data[first:first + length], data[second:second + length] = (data[second:second + length],
                                                                data[first:first + length])


def repeat(data, random):
    begin, end = stretch(random, len(data), random.choice([10, 1000, 20_000]))
    data[end:end] = data[begin:end]


def insert(data, random):
    at = random.randint(0, len(data))
    data[at:at] = random.randbytes(random.choice([1, 10, 300]))


def hostile_numbers(data, random):
    """Digits become digits that mean something extreme: for texts and for what is stored as text in databases."""
    at = random.randrange(len(data))
    digits = [i for i in range(max(0, at - 5000), min(len(data), at + 5000)) if 48 <= data[i] <= 57]
    for i in random.sample(digits, min(len(digits), 20)):
        data[i:i + 1] = random.choice([b"9" * 12, b"-", b"1e300", b"9", b"0", b"\""])


WAYS = [flip_bytes, flip_bits, truncate, cut_out, zeros, swap, repeat, insert, hostile_numbers]


def unpacked(data):
    """The contents of a packed file, or None."""
    try:
        if data[:2] == b"\x1f\x8b":
            return gzip.decompress(data)
        if data[:3] == b"BZh":
            return bz2.decompress(data)
        if data[:6] == b"\xfd7zXZ\0":
            return lzma.decompress(data)
        if data[:4] == b"PK\3\4":
            archive = zipfile.ZipFile(io.BytesIO(data))
            return archive.read(archive.namelist()[0])
    except (OSError, EOFError, ValueError, zipfile.BadZipFile):
        pass
    return None


class Sample:
    def __init__(self, path):
        self.path = path
        self.name = path.name
        if path.is_dir():
            self.files = sorted(p.relative_to(path) for p in path.rglob("*")
                                if p.is_file() and (p.suffix in (".otf2", ".def", ".evt") or "_dump_" in p.name))
            self.contents = None
        else:
            self.data = path.read_bytes()
            self.contents = unpacked(self.data)

    def write_variant(self, number, seed, folder):
        """Writes variant `number` below the folder. Returns the path for paceline, the way, and the contents' size."""
        rng = random.Random(f"{seed} {self.name} {number}")
        way = WAYS[number % len(WAYS)]
        if self.path.is_dir():
            copy = folder / self.name
            shutil.copytree(self.path, copy)
            target = copy / rng.choice(self.files)
            target.chmod(0o600)
            self.damage(target, target.read_bytes(), way, rng)
            return copy, f"{way.__name__} in {target.name}", sum(f.stat().st_size for f in copy.rglob("*"))
        of_contents = self.contents is not None and number // len(WAYS) % 2 == 1
        target = folder / (self.path.stem if of_contents else self.name)
        size = self.damage(target, self.contents if of_contents else self.data, way, rng)
        # What is packed counts with the size of its contents, which are on the disk while they are read.
        if self.contents is not None:
            size = max(size, len(self.contents))
        return target, way.__name__ + (" in the contents" if of_contents else ""), size

    @staticmethod
    def damage(target, data, way, rng):
        data = bytearray(data)
        for _ in range(rng.choice([1, 1, 1, 3])):
            if len(data) > 2:
                way(data, rng)
        target.write_bytes(data)
        return len(data)


def write_chunked_otf2(archive, folder, chunk_bytes=1 << 18, chunks=3):
    """Writes an archive with the definitions of `archive` and several chunks of events for each location."""
    anchor = next(archive.glob("*.otf2"))
    copy = folder / f"{archive.name}-chunks"
    shutil.copytree(archive, copy)
    for path in [copy, *copy.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
    data = bytearray((copy / anchor.name).read_bytes())
    struct.pack_into("<Q", data, 12, chunk_bytes)
    (copy / anchor.name).write_bytes(data)
    for path in copy.rglob("*.evt"):
        number, time, out = 0, struct.unpack_from("<Q", path.read_bytes(), 19)[0], b""
        for chunk in range(chunks):
            events = b""
            first = number + 1
            while len(events) < chunk_bytes - 100:
                for record in (12, 13):  # a region begins, and ends
                    time += 100
                    events += struct.pack("<BQ", 5, time) + bytes([record, 1, number // 2 % 3])
                    number += 1
            head = struct.pack("<BcQQ", 3, b"B", first, number)
            last = chunk + 1 == chunks
            out += head + (events + b"\2\1" if last else events.ljust(chunk_bytes - len(head), b"\0"))
        path.write_bytes(out)
    return copy


def run(program, arguments, folder, limit_bytes):
    """Runs the program. Returns (what went wrong or None, status, output, errors, peak memory)."""
    def limits():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MACHINE_LIMIT, MACHINE_LIMIT))
    with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err:
        process = subprocess.Popen([program, *arguments], stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                                   env={**os.environ, "TMPDIR": str(folder / "tmp")}, preexec_fn=limits)
        timed_out = threading.Event()
        timer = threading.Timer(TIME_LIMIT_S, lambda: (timed_out.set(), process.kill()))
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)  # it was waited for
    output, errors = (folder / "out").read_bytes(), (folder / "err").read_text(errors="replace")
    memory = usage.ru_maxrss * 1024
    wrong = None
    if timed_out.is_set():
        wrong = f"did not end within {TIME_LIMIT_S} s"
    elif process.returncode < 0:
        wrong = f"ended by {signal.Signals(-process.returncode).name}"
    elif process.returncode not in (0, 1):
        wrong = f"ended with status {process.returncode}"
    elif memory > limit_bytes:
        wrong = f"took {memory / 1e6:.0f} MB of memory, more than {limit_bytes / 1e6:.0f} MB"
    return wrong, process.returncode, output, errors, memory


FORMATS = ["chrome", "perfetto", "csv", "arrow", "sqlite", "otf2", "speedscope", "pprof", "talp", "chakra"]


def commands(trace, folder, all_of_them):
    """Those that get a variant, `info` first. The later ones run for traces that `info` can read."""
    yield ["info", "--format", "json", str(trace)]
    yield ["report", "--format", "json", str(trace)]
    if not all_of_them:
        return
    for sql in ("SELECT count(*), total(duration_ns), max(depth) FROM slices",
                "SELECT count(*), sum(wait_ns) FROM collectives"):
        yield ["query", "--format", "json", str(trace), sql]
    for name in FORMATS:
        yield ["export", "--to", name, "-o", str(folder / f"out.{name}"), str(trace)]


def judge(program, sample, number, options):
    """Returns (failures, what happened: "read", "noticed" or "refused")."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "tmp").mkdir()
        (folder / "in").mkdir()
        path, way, size = sample.write_variant(number, options.seed, folder / "in")
        failures, happened = [], "refused"
        for arguments in commands(path, folder, options.all):
            command = arguments[0]
            if happened == "refused" and command not in ("info", "report"):
                break
            wrong, status, output, errors, _ = run(program, arguments, folder, BASE_MEMORY + TIMES_THE_SIZE * size)
            if not wrong and status == 0 and command != "export":
                try:
                    document = json.loads(output)
                except ValueError as error:
                    wrong = f"wrote no JSON: {error}"
                else:
                    if command == "info":
                        noticed = document.get("notes") or any(t["dropped"] or t["damaged"]
                                                               for t in document["traces"])
                        happened = "noticed" if noticed else "read"
            elif not wrong and status != 0 and path.name not in errors:
                wrong = f"failed without naming the file: {errors[:200]!r}"
            elif not wrong and len(errors.splitlines()) > 50:
                wrong = f"wrote {len(errors.splitlines())} lines of errors"
            if wrong:
                failures.append(f"{sample.name}: variant {number} ({way}): paceline {' '.join(arguments[:3])} {wrong}")
        if any((folder / "tmp").iterdir()):
            failures.append(f"{sample.name}: variant {number} ({way}): something was left in $TMPDIR")
        if failures and options.keep:
            kept = options.keep / f"{sample.name}-{number}"
            shutil.copytree(folder / "in", kept, dirs_exist_ok=True)
        return failures, happened


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("samples", nargs="+", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=250)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--first", type=int, default=0, help="the first variant's number")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the variants that failed")
    parser.add_argument("--all", action="store_true", help="also `paceline query` and `paceline export` to every format")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        paths = [path for path in options.samples if path.exists()]
        chunked = [write_chunked_otf2(path, pathlib.Path(temporary)) for path in paths if any(path.glob("*.otf2"))]
        samples = [Sample(path) for path in paths + chunked]
        if not samples:
            print("skipped: no sample is there")
            return 77
        return sweep(samples, options)


def sweep(samples, options):
    """Runs the variants of all samples. Returns the exit status."""
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for sample in samples:
            variants = range(options.first, options.first + options.count)
            results = pool.map(lambda number, sample=sample: judge(options.program, sample, number, options),
                               variants)
            counts = {"read": 0, "noticed": 0, "refused": 0}
            for failures, happened in results:
                counts[happened] += 1
                failed += len(failures)
                for failure in failures:
                    print(failure, flush=True)
            print(f"{sample.name}: {options.count} variants: {counts['noticed']} read with a note, {counts['read']} "
                  f"without, {counts['refused']} refused", flush=True)
    print(f"{failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
