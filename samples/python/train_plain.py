#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training with PyTorch's DistributedDataParallel on CPUs, as one writes it, without NVTX ranges.

    torchrun --nproc-per-node 2 train_plain.py
    paceline record --pytorch -o run2 -- torchrun --nproc-per-node 2 train_plain.py      # and recorded by phases

Nothing in it knows Paceline. Two options make a fault, so that you can see how a report names it.
"""
import argparse
import hashlib
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--images", type=int, default=512)
parser.add_argument("--batch-size", type=int, default=16, help="of each rank")
parser.add_argument("--width", type=int, default=32, help="channels of the network")
parser.add_argument("--workers", type=int, default=2, help="of the DataLoader of each rank")
parser.add_argument("--slow-rank", type=int, default=-1, help="this rank sleeps for 30 ms before each backward")
parser.add_argument("--slow-item", type=float, default=0, metavar="MS", help="each image takes this long to load")
parser.add_argument("--checkpoint", default="", help="file that rank 0 writes after each epoch")


class Images(Dataset):
    """Random images; each depends on its number alone."""

    def __init__(self, count, slow_ms):
        self.count, self.slow_ms = count, slow_ms

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(self.slow_ms / 1000)
        generator = torch.Generator().manual_seed(index)
        return torch.randn(3, 32, 32, generator=generator), index % 10


def evaluate(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for image, label in loader:
            right += (model(image).argmax(1) == label).sum()
            total += len(label)
    model.train()
    counts = torch.tensor([float(right), float(total)])
    dist.all_reduce(counts)
    return counts


def main():
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    data = Images(options.images, options.slow_item)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, options.batch_size, sampler=sampler, num_workers=options.workers,
                        persistent_workers=options.workers > 0)
    test_data = Images(options.images // 8, 0)
    test_loader = DataLoader(test_data, options.batch_size, sampler=DistributedSampler(test_data))
    width = options.width
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, width, 3, padding=1), torch.nn.BatchNorm2d(width), torch.nn.ReLU(),
        torch.nn.Conv2d(width, width, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(4), torch.nn.Flatten(),
        torch.nn.Linear(width * 8 * 8, 10))
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        for image, label in loader:
            optimizer.zero_grad()
            loss = loss_of(model(image), label)
            if dist.get_rank() == options.slow_rank:
                time.sleep(0.03)
            loss.backward()
            optimizer.step()
        # Kept until the process group is gone: if one of gloo's threads has to free this tensor, torch 1.13 may hang then.
        counts = evaluate(model, test_loader)
        if options.checkpoint and dist.get_rank() == 0:
            torch.save(model.module.state_dict(), options.checkpoint)
    weights = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
    print(f"rank {dist.get_rank()} of {dist.get_world_size()}: loss {loss.item():.9f}, accuracy {counts[0] / counts[1]:.4f}, "
          f"weights {weights.hexdigest()[:16]}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
