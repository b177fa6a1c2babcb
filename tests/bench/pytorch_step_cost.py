#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: mpirun -n 2 paceline record -o TRACE --pytorch -- python pytorch_step_cost.py STORE [BATCH [PAIRS [apart]]]

How much longer a step of DistributedDataParallel over gloo takes while it is recorded. Blocks of 50 ms with and without
recording take turns inside the same processes: the noise of a shared machine lasts longer. Without it no event, sample or
counter is taken; what stays in both are the hooks of `--pytorch` themselves, the kernel's records of switches and a part of
the work on the recorder's threads. Prints the mean and the median of the differences of wall time and of CPU time (all
threads of the process, the recorder's too) with 95 % intervals (bootstrap over the pairs of blocks, 1 % trimmed at both ends).

STORE is a new file for the ranks to meet. A BATCH of 2 (default) makes steps of some 10 ms, 24 of 100 ms. PAIRS: 300. With
`apart`, for one rank on two CPUs, the main thread has CPU 0 to itself, and all other threads, the recorder's too, have CPU 1.
"""
import ctypes
import os
import statistics
import sys
import time

import numpy
import torch
from torch import distributed, nn

BLOCK_S = 0.05


def trimmed_mean(values, axis=-1):
    cut = values.shape[axis] // 100
    return numpy.sort(values, axis=axis)[..., cut:values.shape[axis] - cut].mean(axis=axis)


def interval(values, statistic):
    draws = numpy.random.default_rng(1).choice(values, (2000, len(values)))
    low, high = numpy.quantile(statistic(draws, axis=-1), [0.025, 0.975])
    return f"{100 * statistic(values, axis=-1):+.2f} % ({100 * low:+.2f} to {100 * high:+.2f} %)"


def main():
    batch, pairs = (int(sys.argv[i]) if len(sys.argv) > i else usual for i, usual in ((2, 2), (3, 300)))
    rank, ranks = (int(os.environ["OMPI_COMM_WORLD_" + what]) for what in ("RANK", "SIZE"))
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", rank=rank, world_size=ranks, init_method="file://" + os.path.abspath(sys.argv[1]))
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Flatten(),
                      nn.Linear(32 * 24 * 24, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.randn(batch, 3, 24, 24)
    set_recording = ctypes.CDLL(None).paceline_recording

    def step():
        optimizer.zero_grad()
        model(images).sum().backward()
        optimizer.step()

    def seconds(steps):
        """Of a step: wall and CPU time."""
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(steps):
            step()
        return (time.perf_counter() - wall) / steps, (time.process_time() - cpu) / steps

    def steps_in(wanted_s):
        """The same number on all ranks."""
        number = torch.tensor(max(1, round(wanted_s / seconds(20)[0])))
        distributed.broadcast(number, 0)
        return int(number)

    if sys.argv[4:] == ["apart"]:
        for task in map(int, os.listdir("/proc/self/task")):
            os.sched_setaffinity(task, {0 if task == os.getpid() else 1})
    seconds(steps_in(3))  # until the recorder knows how often the threads switch
    steps = steps_in(BLOCK_S)
    found = {0: [], 1: []}  # by whether it records
    for pair in range(pairs):
        for records in (pair % 2, 1 - pair % 2):
            set_recording(records)
            step()
            found[records].append(seconds(steps))
    if rank != 0:
        return
    print(f"step of {1e3 * statistics.median(wall for wall, _ in found[0]):.1f} ms without recording; {pairs} pairs of blocks of "
          f"{steps}; load {os.getloadavg()[0]:.1f}")
    for index, what in enumerate(("a step is longer by", "CPU time of the process")):
        ratios = numpy.array([on[index] / off[index] - 1 for on, off in zip(found[1], found[0])])
        print(f"  {what}: mean {interval(ratios, trimmed_mean)}, median {interval(ratios, numpy.median)}")


if __name__ == "__main__":
    main()
