#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: causes_ddp.py CAUSE [ITERATIONS]

One rank of a training job with DistributedDataParallel over gloo that suffers from an injected cause (causes.py starts it).
Prints what was injected as JSON, one line a rank: the seconds on this rank, those of them that were blocked, and the time that
its main thread, and all threads together, were ready to run and had no CPU.
"""
import gc
import glob
import json
import mmap
import os
import sys
import tempfile
import threading
import time

import torch
import torch.distributed as distributed
from torch.utils.data import DataLoader, Dataset

CAUSE = sys.argv[1]
ITERATIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 150
RANK = int(os.environ.get("RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))
injected = blocked = 0.0


class Counted:
    """Adds the time of a block to what was injected, and what it neither computed nor waited for a CPU to what was blocked;
    it is no function on the stack."""

    def __enter__(self):
        self.begin, self.active = time.perf_counter(), self.active_s()

    def __exit__(self, *_):
        global injected, blocked
        seconds = time.perf_counter() - self.begin
        injected += seconds
        blocked += seconds - (self.active_s() - self.active)

    @staticmethod
    def active_s():
        return time.thread_time() + wait_for_cpu_s(("/proc/thread-self",))


class SlowFile:
    """A file that is not in the page cache, on a device that gives this rank 4 MiB a second."""
    BYTES = 128 << 10

    def __init__(self):
        self.file = os.open(os.path.join(os.environ["CAUSES_FOLDER"], f"slow-{RANK}"), os.O_RDWR | os.O_CREAT)
        os.write(self.file, os.urandom(self.BYTES))
        os.fsync(self.file)
        with open("/sys/fs/cgroup/blkio/paceline-causes/cgroup.procs", "w", encoding="ascii") as group:
            group.write(str(os.getpid()))

    def read(self):
        os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.pread(self.file, self.BYTES, 0)


class Images(Dataset):
    def __init__(self, size):
        self.images, self.size = torch.randn(64, 3, 24, 24), size
        self.slow = SlowFile() if CAUSE == "slow_file" and RANK == 1 else None

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if CAUSE == "slow_getitem" and RANK == 1 and index % 8 == 0:
            with Counted():
                time.sleep(0.03)
        if CAUSE == "slow_file" and RANK == 1 and index % 8 == 0:
            with Counted():
                self.slow.read()
        return self.images[index % 64], index % 10


def slow_function():
    if CAUSE == "sleep":
        time.sleep(0.03)
    end = time.perf_counter() + 0.03
    while CAUSE == "python_function" and time.perf_counter() < end:
        sum(range(100))


def hold_the_lock():
    """Computes for some 30 ms without giving the interpreter's lock away, again and again."""
    while True:
        with Counted():
            sum(range(1_500_000))
        time.sleep(0.005)


def write_and_sync(file):
    """As long as one fsync of a slow disk, on a fast one too: the file has its size, so that only the fsync waits for the disk."""
    end, number = time.perf_counter() + 0.05, 0
    while time.perf_counter() < end:
        os.pwrite(file.fileno(), b"some text", 4096 * (number % 256))
        os.fsync(file.fileno())
        number += 1


class MappedFile:
    """A file whose pages are neither mapped nor in the page cache when they are touched."""
    BYTES = 8 << 20

    def __init__(self):
        self.path = os.path.join(os.environ["CAUSES_FOLDER"], f"mapped-{RANK}")
        with open(self.path, "wb") as file:
            file.write(os.urandom(self.BYTES))
            file.flush()
            os.fsync(file.fileno())
        self.file = os.open(self.path, os.O_RDONLY)
        self.pages = mmap.mmap(self.file, self.BYTES, prot=mmap.PROT_READ)
        self.pages.madvise(mmap.MADV_RANDOM)  # a page a fault

    def drop(self):
        self.pages.madvise(mmap.MADV_DONTNEED)
        os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_DONTNEED)

    def touch(self):
        for number in range(200):
            self.pages[number * self.BYTES // 200]


def wait_for_cpu_s(tasks=("/proc/self",)):
    waited = 0
    for task in tasks:
        with open(f"{task}/schedstat", encoding="ascii") as file:
            waited += int(file.read().split()[1]) / 1e9
    return waited


def programs_threads():
    for task in glob.glob("/proc/self/task/*"):
        with open(f"{task}/comm", encoding="ascii") as file:
            if not file.read().startswith("paceline"):
                yield task


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    distributed.init_process_group("gloo", rank=RANK, world_size=2, init_method=os.environ["CAUSES_STORE"])
    batch = 32 if CAUSE == "unequal_batches" and RANK == 1 else 8
    loader = DataLoader(Images(batch * ITERATIONS), batch_size=batch)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 3, padding=1),
                                torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(32 * 576, 10))
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    garbage = []  # to look through
    if CAUSE == "gc_pause":
        gc.disable()
        if RANK == 1:
            garbage.extend([{"number": number}] for number in range(150_000))
    mapped = MappedFile() if RANK == 1 and CAUSE == "page_faults" else None
    if CAUSE == "held_lock" and RANK == 1:
        threading.Thread(target=hold_the_lock, daemon=True).start()
    with tempfile.TemporaryFile(dir=os.environ.get("CAUSES_FOLDER")) as file:
        file.write(bytes(4096 * 256))
        file.flush()
        os.fsync(file.fileno())
        begin, waited = time.perf_counter(), wait_for_cpu_s()
        for step, (images, labels) in enumerate(loader):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            if CAUSE == "fsync" and step % 10 == 9:
                with Counted():
                    write_and_sync(file)
            if CAUSE in ("sleep", "python_function") and RANK == 1:
                with Counted():
                    slow_function()
            if mapped is not None:
                mapped.drop()
                with Counted():
                    mapped.touch()
            if CAUSE == "gc_pause" and RANK == 1 and step % 3 == 0:
                with Counted():
                    gc.collect()
    print(json.dumps({"rank": RANK, "injected_s": injected, "blocked_s": blocked, "no_cpu_s": wait_for_cpu_s() - waited,
                      "all_no_cpu_s": wait_for_cpu_s(programs_threads()),
                      "seconds": time.perf_counter() - begin}), flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
