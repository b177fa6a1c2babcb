#!/usr/bin/env python3
"""usage: paceline record --pytorch -o DIR -- python3 overhead.py [PAIRS]

Measures what the hooks cost a step, in two ways.

1. Each hook around a function that does nothing: the shortest of many loops, which a busy machine disturbs least, times
   the number of calls in a step.
2. Whole steps. Steps with the hooks and steps without them alternate in one process, in blocks of
20, because two runs of one program differ by more than the hooks cost. Times are CPU times of the thread. Prints the
difference of neighbouring blocks: the median, and a 95 % interval of it by bootstrap.
"""
import random
import statistics
import sys
import threading
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


def nothing(*args, **kwargs):
    pass


def shortest_ns(function, *args):
    calls, times = 300, []
    for _ in range(60):
        begin = time.thread_time_ns()
        for _ in range(calls):
            function(*args)
        times.append((time.thread_time_ns() - begin) / calls)
    return min(times)


def each_hook(modules):
    """The hooks around a function that does nothing, with the number of calls in a step of a network with `modules`."""
    model = torch.nn.Identity()
    optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=0.1)
    data = torch.utils.data.TensorDataset(torch.zeros(1000000, 1))
    loader = iter(torch.utils.data.DataLoader(data, BATCH))
    fetcher = loader._dataset_fetcher
    calls = {"__call__": (2, model, 0), "_engine_run_backward": (1,), "backward": (1,), "step": (1, optimizer),
             "zero_grad": (1, optimizer), "__next__": (1, loader), "fetch": (1, fetcher, [0])}
    model._call_impl = nothing  # instead of forward
    total = inner = 0
    print("| hook | calls in a step | cost of one |\n|---|---|---|")
    for owner, name, hook, original in hooks():
        cells = dict(zip(hook.__code__.co_freevars, hook.__closure__))
        if name != "__call__":
            cells["original"].cell_contents = nothing
        number, *arguments = calls[name]
        before = shortest_ns(nothing, *arguments)
        cost = shortest_ns(hook, *arguments) - before
        total += number * cost
        print(f"| {name} | {number} | {cost:.0f} ns |", flush=True)
        if name == "__call__":
            inside = sys.modules["paceline_pytorch.training"].inside
            inside.add(threading.get_ident())
            inner = shortest_ns(hook, *arguments) - before
            inside.clear()
            print(f"| {name} of an inner module | {modules} | {inner:.0f} ns |", flush=True)
        if name != "__call__":
            cells["original"].cell_contents = original
    print(f"| a step | | {(total + modules * inner) / 1000:.1f} µs |", flush=True)


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    torch.set_num_threads(1)
    each_hook(61)
    if pairs == 0:
        return
    print("\n| modules | step | cost of the hooks | |\n|---|---|---|---|")
    program(2, 16, pairs)
    program(30, 16, pairs)
    program(30, 448, max(pairs // 5, 2))


if __name__ == "__main__":
    main()
