#!/usr/bin/env python3
"""usage: paceline record --pytorch -o DIR -- python3 overhead.py [PAIRS]

Measures what the hooks cost a step. Steps with the hooks and steps without them alternate in one process, in blocks of
20, because two runs of one program differ by more than the hooks cost. Times are CPU times of the thread. Prints the
difference of neighbouring blocks: the median, and a 95 % interval of it by bootstrap.
"""
import random
import statistics
import sys
import time

import torch

BLOCK, BATCH = 20, 16


def hooks():
    """The functions that are replaced in a step: where they are, the hook and the original."""
    from torch.utils.data import _utils, dataloader

    of_backward = "_engine_run_backward" if hasattr(torch.autograd, "_engine_run_backward") else "backward"
    places = [(torch.nn.Module, "__call__"), (torch.autograd, of_backward), (torch.optim.SGD, "step"),
              (torch.optim.Optimizer, "zero_grad"), (dataloader._BaseDataLoaderIter, "__next__"),
              (_utils.fetch._MapDatasetFetcher, "fetch")]
    return [(owner, name, vars(owner)[name], vars(owner)[name].__wrapped__) for owner, name in places]


def program(blocks, size, pairs):
    torch.manual_seed(1)
    layers = [layer for _ in range(blocks) for layer in (torch.nn.Linear(size, size), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(size, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = torch.nn.CrossEntropyLoss()
    images = BATCH * BLOCK * 2 * (pairs + 2)
    data = torch.utils.data.TensorDataset(torch.randn(images, size), torch.zeros(images, dtype=torch.long))
    loader = iter(torch.utils.data.DataLoader(data, BATCH))
    places = hooks()

    def block(hooked):
        for owner, name, hook, original in places:
            setattr(owner, name, hook if hooked else original)
        times = []
        for _ in range(BLOCK):
            begin = time.thread_time_ns()
            image, label = next(loader)
            optimizer.zero_grad()
            loss_of(model(image), label).backward()
            optimizer.step()
            times.append((time.thread_time_ns() - begin) / 1000)
        return statistics.median(times)

    block(True), block(False)
    alone, differences = [], []
    for pair in range(pairs):
        first = pair % 2 == 0
        times = {first: block(first)}
        times[not first] = block(not first)
        alone.append(times[False])
        differences.append(times[True] - times[False])
    medians = sorted(statistics.median(random.choices(differences, k=pairs)) for _ in range(1000))
    step, cost = statistics.median(alone), statistics.median(differences)
    print(f"| {2 * blocks + 1} | {step:.0f} µs | {cost:.1f} µs ({medians[25]:.1f} to {medians[974]:.1f}) "
          f"| {100 * cost / step:.2f} % |", flush=True)


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    torch.set_num_threads(1)
    print("| modules | step | cost of the hooks | |\n|---|---|---|---|")
    program(2, 16, pairs)
    program(30, 16, pairs)
    program(30, 448, max(pairs // 5, 2))


if __name__ == "__main__":
    main()
