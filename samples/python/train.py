#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training with PyTorch's DistributedDataParallel, as one writes it, with NVTX ranges.

    pip install torch nvtx      # without nvtx, PyTorch's own binding is used, which its CPU-only builds lack
    torchrun --nproc-per-node 2 train.py
    paceline record -o run2 -- torchrun --nproc-per-node 2 train.py      # and recorded: one file a rank

Nothing in it knows Paceline.
"""
import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

try:
    from nvtx import annotate
except ImportError:
    from torch.cuda.nvtx import range as annotate

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--steps", type=int, default=50)
parser.add_argument("--batch-size", type=int, default=32, help="of each rank")
options = parser.parse_args()

dist.init_process_group("gloo")
torch.manual_seed(1)
images = options.steps * options.batch_size * dist.get_world_size()
data = TensorDataset(torch.randn(images, 3, 32, 32), torch.randint(0, 10, (images,)))
loader = DataLoader(data, options.batch_size, sampler=DistributedSampler(data))
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(4), torch.nn.Flatten(),
    torch.nn.Linear(16 * 8 * 8, 10))
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loss_of = torch.nn.CrossEntropyLoss()

batches = iter(loader)
for step in range(options.steps):
    with annotate("step"):
        with annotate("preprocess"):
            image, label = next(batches)
        with annotate("forward"):
            loss = loss_of(model(image), label)
        with annotate("backward"):  # and DistributedDataParallel's allreduce, which hides in it
            loss.backward()
        with annotate("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: loss {loss.item():.3f}")
dist.destroy_process_group()
