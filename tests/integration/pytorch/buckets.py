#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: buckets.py BUCKETS ITERATIONS [fp16 | power_sgd | own], under launch.py

DistributedDataParallel whose gradient is averaged in 1, 2 or 13 buckets. Rank 1 sleeps for 30 ms before each backward, and
prints how long it really slept on average. The last argument chooses a communication hook: two of PyTorch's, or one of the
script's own.
"""
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

LAYERS, WIDTH = 13, 256
LAYER_MIB = WIDTH * WIDTH * 4 / 2**20
# The caps of the first bucket and of the others, in layers.
CAPS = {1: (2 * LAYERS, 2 * LAYERS), 2: (1, 2 * LAYERS), LAYERS: (1, 1)}

buckets, iterations = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(1)
first, others = CAPS[buckets]
dist._DEFAULT_FIRST_BUCKET_BYTES = int(first * LAYER_MIB * 2**20)
model = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))
model = DistributedDataParallel(model, bucket_cap_mb=others * LAYER_MIB)


def own_hook(group, bucket):
    work = dist.all_reduce(bucket.buffer().div_(2), group=group, async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


hook = sys.argv[3] if len(sys.argv) > 3 else None
if hook == "fp16":
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)
elif hook == "power_sgd":
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
elif hook == "own":
    model.register_comm_hook(dist.group.WORLD, own_hook)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
images = torch.randn(2, WIDTH)
slept = 0.0
for iteration in range(iterations):
    optimizer.zero_grad()
    loss = model(images).square().mean()
    if dist.get_rank() == 1:
        begin = time.perf_counter()
        time.sleep(0.03)
        slept += time.perf_counter() - begin
    loss.backward()
    optimizer.step()
if dist.get_rank() == 1:
    print(f"slept {1000 * slept / iterations:.3f} ms", flush=True)
dist.barrier()
