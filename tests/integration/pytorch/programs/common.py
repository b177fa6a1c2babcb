# SPDX-License-Identifier: Apache-2.0
"""What the programs share: data, a network, a loop, and the line with the results of a rank."""
import hashlib
import os
import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

BATCH, IMAGES, EPOCHS = 16, 384, 2
PROGRAMS = {}


def program(needs="torch.distributed", launch="fork", ranks=None, collectives=True, other=""):
    """Adds a function to the programs. `needs`: modules without which it is left out. `launch`: what starts the ranks: launch.py ("fork", or
    "ranks" with an interpreter for each), torchrun, or the program itself, for the number in $RANKS ("self"). `ranks`: the only number of ranks that it has. `collectives`: whether each iteration has
    any. `other`: what of its own the program does between the phases, if that takes more than 5 % of its iterations."""

    def add(function):
        about = {"needs": needs, "launch": launch, "ranks": ranks, "collectives": collectives, "other": other}
        PROGRAMS[function.__name__.replace("_", "-")] = (function, about)
        return function

    return add


class Images(Dataset):
    def __init__(self, count=IMAGES):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(3, 16, 16, generator=generator), index % 10


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.ReLU(),
        torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(64 * 64, 128), torch.nn.ReLU(),
        torch.nn.Linear(128, 10))


def wide(width=256, layers=2):
    torch.manual_seed(1)
    parts = [part for _ in range(layers) for part in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    return torch.nn.Sequential(*parts[:-1])


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def hash_of(parameters):
    weights = hashlib.sha256()
    for parameter in parameters:
        if hasattr(parameter, "full_tensor"):
            parameter = parameter.full_tensor()
        weights.update(parameter.detach().cpu().float().contiguous().numpy().tobytes())
    return weights.hexdigest()[:16]


def say(steps, loss, parameters, rank=None):
    rank = os.environ.get("RANK", "0") if rank is None else rank
    loss = float(torch.as_tensor(loss).detach())
    # In one piece, because the ranks share the file.
    sys.stdout.write(f"rank {rank}: steps {steps}, loss {loss:.9f}, weights {hash_of(parameters)}\n")
    sys.stdout.flush()


def loader_of(workers=0, method=None, persistent=False, sampler=True, data=None, batch=BATCH):
    data = Images() if data is None else data
    return DataLoader(data, batch, sampler=DistributedSampler(data) if sampler else None, num_workers=workers,
                      multiprocessing_context=method, persistent_workers=persistent)


def loss_of(model, image, label):
    return torch.nn.functional.cross_entropy(model(image), label)


def train(model, loader, optimizer, accumulate=1):
    steps = 0
    for _ in range(EPOCHS):
        for number, (image, label) in enumerate(loader):
            loss = loss_of(model, image, label)
            loss.backward()
            if (number + 1) % accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()
                steps += 1
    return steps, loss


def ddp(prepare=lambda model: model, accumulate=1, options=None, **loading):
    dist.init_process_group("gloo")
    model = prepare(torch.nn.parallel.DistributedDataParallel(network(), **(options or {})))
    say(*train(model, loader_of(**loading), sgd(model), accumulate), model.parameters())
    dist.destroy_process_group()
