#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank of a training job with DistributedDataParallel over gloo, whose settings prediction_loops.py changes.

mpirun starts it; the ranks meet at --address. Delays are sleeps.
"""
import argparse
import fcntl
import os
import socket
import struct
import time

import torch
import torch.distributed as distributed
from torch import nn
from torch.utils.data import DataLoader, Dataset

RANK = int(os.environ["OMPI_COMM_WORLD_RANK"])


def interface_of(network):
    """The network interface whose address begins like this, for gloo."""
    with socket.socket() as any_socket:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(any_socket, 0x8915, struct.pack("256s", name.encode()))  # SIOCGIFADDR
            except OSError:  # it has no address
                continue
            if socket.inet_ntoa(answer[20:24]).startswith(network):
                return name
    raise SystemExit(f"prediction_loops_ddp.py: no network interface has an address in {network}")


class Images(Dataset):
    def __init__(self, count, delay_s):
        self.count, self.delay_s = count, delay_s
        self.images = torch.randn(64, 3, 32, 32)

    def __len__(self):
        return self.count

    def __getitems__(self, indices):
        time.sleep(self.delay_s)
        return [(self.images[i % 64], i % 10) for i in indices]


class Delay(nn.Module):
    """Sleeps in every n-th pass."""

    def __init__(self, seconds, every):
        super().__init__()
        self.seconds, self.every, self.passes = seconds, every, 0

    def forward(self, x):
        self.passes += 1
        if self.passes % self.every == 0:
            time.sleep(self.seconds)
        return x


def convolutions(width):
    """Most of the time and few weights."""
    layers, channels = [], 3
    for outputs in (width, width, 2 * width, 2 * width, 4 * width):
        layers += [nn.Conv2d(channels, outputs, 3, 1 + (outputs > channels > 3), 1), nn.BatchNorm2d(outputs), nn.ReLU()]
        channels = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def perceptron(width):
    """Most of the weights and little time."""
    return nn.Sequential(nn.Flatten(), nn.Linear(3072, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, 10))


def transformer(width):
    layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0, batch_first=True)
    return nn.Sequential(nn.Conv2d(3, width, 4, 4), nn.Flatten(2), Turned(), nn.TransformerEncoder(layer, 2), Mean(),
                         nn.Linear(width, 10))


class Turned(nn.Module):
    def forward(self, x):
        return x.transpose(1, 2)


class Mean(nn.Module):
    def forward(self, x):
        return x.mean(1)


MODELS = {"convolutions": convolutions, "perceptron": perceptron, "transformer": transformer}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", required=True)
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--slow", default="0:0:1", help="RANK:MILLISECONDS:EVERY")
    parser.add_argument("--loader", default="0:0", help="RANK:MILLISECONDS")
    parser.add_argument("--bucket-mb", type=float, default=25)
    parser.add_argument("--fp16", action="store_true")
    o = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    os.environ["GLOO_SOCKET_IFNAME"] = interface_of(o.address.rpartition(".")[0])
    distributed.init_process_group("gloo", init_method=f"tcp://{o.address}:{o.port}", rank=RANK, world_size=2)
    slow, slow_ms, every = (float(of) for of in o.slow.split(":"))
    loader, loader_ms = (float(of) for of in o.loader.split(":"))
    delay = Delay(slow_ms / 1e3 * (slow == RANK), every)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(delay, MODELS[o.model](o.width)),
                                                bucket_cap_mb=o.bucket_mb)
    if o.fp16:
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
        model.register_comm_hook(None, fp16_compress_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    for images, labels in DataLoader(Images(o.batch * o.iterations, loader_ms / 1e3 * (loader == RANK)), o.batch):
        loss_of(model(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
