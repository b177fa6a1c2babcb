#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: paceline record --pytorch -o DIR -- python3 overhead.py [STEPS [WIDTH]]

Measures what the hooks cost a step of a plain loop, in networks of several sizes. WIDTH is that of the largest, which takes
about 20 ms for a step with PyPI's torch.

Most of the cost is memory that a hook touches for the first time in a step, because the step's computation has filled the
caches. A loop that calls a hook again and again does not show it, and two runs of one program differ by more than all
hooks cost. So the hooks are measured in their places: clocks are read before and after a hook, and before and after
the original function in it. In one of two steps, by chance the first or the second, the originals are called without
their hooks. The cost of a hook is the median of its times, minus the median without it. The table has the sum for all
hooks, and a 95 % interval of it by bootstrap. It is too high rather than too low, because the original would have had to
touch a part of that memory itself. Inner modules are called one after the other, so their hook is measured in a loop.

The last column has the time of whole steps, compared in the same way. Its interval is wide.
"""
import random
import statistics
import sys
import time

import torch
from torch.utils.data import DataLoader, TensorDataset, _utils, dataloader

from paceline_pytorch import ranges, training

BATCH = 16
WARM = 20  # steps
clock = time.perf_counter_ns
hooks_are_on = True
clocks = {}  # by name of a hook: four clocks for each call


def between_clocks(function, times):
    def call(*args, **kwargs):
        times.append(clock())
        try:
            return function(*args, **kwargs)
        finally:
            times.append(clock())

    return call


def measured(name, original, make):
    """Calls make(original) or the original, with clocks around both."""
    times = clocks[name] = []
    original = between_clocks(original, times)
    hook = make(original)

    def call(*args, **kwargs):
        function = hook if hooks_are_on else original
        times.append(clock())
        try:
            return function(*args, **kwargs)
        finally:
            times.append(clock())

    call.__paceline__ = True  # the package hooks a step once
    return call


def around(name):
    return lambda original: ranges.hook(name, original)


def function_around(name):
    return lambda original: training.function_around(ranges.hook(name, original), original, bool)


def with_original(hook):
    """A hook that finds its original in a variable."""

    def make(original):
        dict(zip(hook.__code__.co_freevars, hook.__closure__))["original"].cell_contents = original
        return hook

    return make


def measure_functions():
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)  # hooks its step
    shared = getattr(torch.autograd, "_engine_run_backward", None)
    if shared is not None:
        torch.autograd._engine_run_backward = measured("backward", shared.__self__, around("around_backward"))
    else:
        backward = torch.autograd.backward.__wrapped__
        torch.autograd.backward = measured("backward", backward, function_around("around_backward"))

    step = torch.optim.SGD.step.__wrapped__
    torch.optim.SGD.step = measured("step", step, lambda original: training._step_hook(original, bool))
    zero_grad = torch.optim.Optimizer.zero_grad.__wrapped__
    torch.optim.Optimizer.zero_grad = measured("zero_grad", zero_grad, function_around("around_zero_grad"))
    of_next = dataloader._BaseDataLoaderIter.__next__
    dataloader._BaseDataLoaderIter.__next__ = measured("__next__", of_next.__wrapped__, with_original(of_next))
    fetcher = _utils.fetch._MapDatasetFetcher
    fetcher.fetch = measured("fetch", vars(fetcher)["fetch"].__func__.__self__, around("around_fetch"))


def measure_module(name, module):
    of_class = torch.nn.Module.__call__.__wrapped__

    def make(original):
        module._call_impl = original
        return torch.nn.Module.__call__

    call = measured(name, module._call_impl, make)
    without = of_class
    if of_class.__code__.co_name == "_call_impl":  # torch 1

        def without(self, *args, **kwargs):
            return self._call_impl(*args, **kwargs)

    dict(zip(call.__code__.co_freevars, call.__closure__))["original"].cell_contents = without
    module.__class__ = type(type(module).__name__, (type(module),), {"__call__": call})


def shortest_ns(function, *args):
    calls, times = 300, []
    for _ in range(60):
        begin = time.thread_time_ns()
        for _ in range(calls):
            function(*args)
        times.append((time.thread_time_ns() - begin) / calls)
    return min(times)


def cost_of_inner_module():
    """In µs."""
    hook, module = torch.nn.Module.__call__, torch.nn.Identity()
    module.forward = lambda: None
    ranges.phases.begin_forward(False)
    try:
        times = [(shortest_ns(hook, module), shortest_ns(hook.__wrapped__, module)) for _ in range(5)]
        with_hook, without = map(min, zip(*times))
        return (with_hook - without) / 1000
    finally:
        ranges.phases.end_inside()


def difference_of_medians(on, off):
    return statistics.median(on) - statistics.median(off)


def cost_of(on, off):
    """Of all hooks. `on` and `off` have a list of times for each hook."""
    return sum(difference_of_medians(on[name], off[name]) for name in on)


def interval(on, off):
    costs = sorted(cost_of(*({name: random.choices(times, k=len(times)) for name, times in arm.items()} for arm in (on, off)))
                   for _ in range(400))
    return f"({costs[10]:.1f} to {costs[389]:.1f})"


def measure_steps(blocks, size, steps, inner):
    global hooks_are_on
    torch.manual_seed(1)
    layers = [layer for _ in range(blocks) for layer in (torch.nn.Linear(size, size), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(size, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = torch.nn.CrossEntropyLoss()
    images = BATCH * (steps + WARM)
    loader = iter(DataLoader(TensorDataset(torch.randn(images, size), torch.zeros(images, dtype=torch.long)), BATCH))
    fetcher = loader._dataset_fetcher
    fetcher.collate_fn = measured("collate", fetcher.collate_fn.__self__, around("before_collate"))
    measure_module("forward", model)
    measure_module("loss", loss_of)

    order = [on for _ in range((steps + WARM) // 2) for on in random.choice(((True, False), (False, True)))]
    for times in clocks.values():
        times.clear()
    durations = []
    for hooks_are_on in order:  # nothing else, because what a script does between steps costs little memory
        begin = clock()
        image, label = next(loader)
        optimizer.zero_grad()
        loss_of(model(image), label).backward()
        optimizer.step()
        durations.append(clock() - begin)
    hooks_are_on = True

    in_hooks = {on: {name: [] for name in clocks} for on in (True, False)}  # in µs
    whole = {on: {"step": []} for on in (True, False)}
    for step in range(WARM, len(order)):
        whole[order[step]]["step"].append(durations[step] / 1000)
        for name, times in clocks.items():
            begin, begin_of_original, end_of_original, end = times[4 * step: 4 * step + 4]
            in_hooks[order[step]][name].append((begin_of_original - begin + end - end_of_original) / 1000)

    modules = 2 * blocks + 1
    on, off = in_hooks[True], in_hooks[False]
    on["modules"], off["modules"] = [modules * inner], [0]
    alone, cost = statistics.median(whole[False]["step"]), cost_of(on, off)
    print(f"| {modules} | {alone / 1000:.1f} ms | {cost:.1f} µs {interval(on, off)} | {100 * cost / alone:.2f} % "
          f"| {cost_of(whole[True], whole[False]):.1f} µs {interval(whole[True], whole[False])} |", flush=True)
    each = ", ".join(f"{name} {difference_of_medians(on[name], off[name]):.1f}" for name in on)
    print(f"  µs: {each}", file=sys.stderr, flush=True)


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    width = int(sys.argv[2]) if len(sys.argv) > 2 else 448
    torch.set_num_threads(1)
    inner = cost_of_inner_module()
    measure_functions()
    print("| modules | step | cost of the hooks | share of the step | whole steps |\n|---|---|---|---|---|")
    measure_steps(2, 16, steps, inner)
    measure_steps(30, 16, steps, inner)
    measure_steps(30, width, steps // 4, inner)


if __name__ == "__main__":
    main()
