# SPDX-License-Identifier: Apache-2.0
"""usage: pytorch_faults_program.py WAY FAULT MILLISECONDS, for each rank (pytorch_faults.py)

A training in which rank 1 has a fault. WAY: ddp-1, ddp-2 or ddp-13 (buckets), fsdp2, tensor (parallel). Rank 1 prints how much
later the fault makes it in each iteration: the mean of what it measured.
"""
import gc
import os
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

WAY, FAULT, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3]) / 1000
LAYERS, WIDTH, ITERATIONS = 13, 256, 300
HANGS_AT = 10
LAYER_MIB = WIDTH * WIDTH * 4 / 2**20
CAPS = {"ddp-1": (2 * LAYERS, 2 * LAYERS), "ddp-2": (1, 2 * LAYERS), "ddp-13": (1, 1)}  # first bucket and others, in layers

torch.set_num_threads(1)
dist.init_process_group("gloo")
is_faulty = dist.get_rank() == 1
injected, step = [], 0


def spend(seconds, how=time.sleep):
    begin = time.perf_counter()
    how(seconds)
    injected.append(time.perf_counter() - begin)


def compute(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        torch.mm(LARGE, LARGE)


LARGE = torch.ones(256, 256)


class Data(Dataset):
    def __len__(self):
        return 8 * ITERATIONS

    def __getitem__(self, index):
        if is_faulty and FAULT == "loader" and index % 8 == 0:
            spend(SECONDS)
        if is_faulty and FAULT == "hang-loader" and index == 8 * HANGS_AT:
            time.sleep(3600)
        return torch.full((WIDTH,), index / 1000)


class Stem(torch.nn.Module):
    """Without weights; its cost follows the number of images, of which rank 1 has more for the fault `batch`."""

    def forward(self, batch):
        if is_faulty and FAULT == "batch":
            spend(SECONDS, compute)
        return batch


class Slow(torch.autograd.Function):
    """Rank 1's backward is late here."""

    @staticmethod
    def forward(context, of):
        return of.clone()

    @staticmethod
    def backward(context, of):
        if not is_faulty:
            return of
        if FAULT == "hook":
            spend(SECONDS)
        elif FAULT == "buckets":
            spend(SECONDS / LAYERS)
        elif FAULT == "hang-backward" and step == HANGS_AT:
            time.sleep(3600)
        return of


class Late(torch.nn.Module):
    def forward(self, of):
        return Slow.apply(of)


def network():
    torch.manual_seed(1)
    modules = [Stem()]
    for layer in range(LAYERS):
        modules.append(torch.nn.Linear(WIDTH, WIDTH, bias=False))
        if FAULT == "buckets" or layer == 0 and FAULT in ("hook", "hang-backward"):  # both ranks pay for the module
            modules.append(Late())
    return torch.nn.Sequential(*modules)


def parallel(model):
    mesh = None if WAY.startswith("ddp") else dist.init_device_mesh("cpu", (dist.get_world_size(),))
    if mesh is None:
        first, others = CAPS[WAY]
        dist._DEFAULT_FIRST_BUCKET_BYTES = int(first * LAYER_MIB * 2**20)
        return torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=others * LAYER_MIB)
    linears = [name for name, module in model.named_children() if isinstance(module, torch.nn.Linear)]
    if WAY == "fsdp2":
        from torch.distributed.fsdp import fully_shard

        for name in linears:
            fully_shard(getattr(model, name), mesh=mesh)
        return fully_shard(model, mesh=mesh)
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    plan = {name: (ColwiseParallel, RowwiseParallel)[number % 2]() for number, name in enumerate(linears[:-1])}
    return parallelize_module(model, mesh, plan)


GARBAGE = []


def make_garbage():
    """As many objects as one collection takes the time for."""
    while True:
        begin = time.process_time()
        gc.collect()
        if time.process_time() - begin >= SECONDS:
            return
        GARBAGE.extend([[] for _ in range(100_000)])


def starve():
    """Another thread holds the interpreter's lock, in a function that does not give it back before its end."""
    spinner = threading.Thread(target=lambda: sum(COUNTED))
    spinner.start()
    time.sleep(0)
    spinner.join()


COUNTED = range(int(SECONDS * 2.5e7))
if is_faulty and FAULT == "gc":
    make_garbage()
model = parallel(network())
optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)
for batch in DataLoader(Data(), 8):
    optimizer.zero_grad()
    output = model(batch)
    loss = (output.full_tensor() if hasattr(output, "full_tensor") else output).square().mean()
    if is_faulty:
        if FAULT == "sleep":
            spend(SECONDS)
        elif FAULT == "gc":
            spend(0, lambda _: gc.collect())
        elif FAULT == "starvation":
            spend(0, lambda _: starve())
        elif step == HANGS_AT and FAULT == "hang-sleep":
            time.sleep(3600)
        elif step == HANGS_AT and FAULT == "hang-other":
            dist.barrier()
        elif step == HANGS_AT and FAULT == "death":
            os._exit(0)
    loss.backward()
    optimizer.step()
    step += 1
if is_faulty and injected:
    print(f"injected {1000 * sum(injected) / step:.3f} ms", flush=True)
dist.barrier()
