#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of PyTorch on CPUs, for speed.py: what a user would write, channels_last, on images in memory.

usage: torch_step.py MODEL IMAGE_SIZE BATCH STEPS THREADS [--bf16] [--evaluate BATCHES] [--store FILE --rank R --ranks N]
MODEL: resnet50 or vgg16. With --store, DistributedDataParallel over gloo. Prints one JSON object. The start-up counts from
the time in PACELINE_BENCH_STARTED (seconds since 1970), or from the start of this file.
"""
import argparse
import json
import os
import resource
import time

STARTED = float(os.environ.get("PACELINE_BENCH_STARTED", time.time()))

import torch  # noqa: E402  loading it is a part of the start-up
from torch import nn  # noqa: E402


def convolution(inputs, outputs, kernel, stride=1):
    return [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs)]


class Bottleneck(nn.Module):
    """Of ResNet v1.5: the stride is in the 3×3 convolution."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.branch = nn.Sequential(*convolution(inputs, width, 1), nn.ReLU(True),
                                    *convolution(width, width, 3, stride), nn.ReLU(True),
                                    *convolution(width, 4 * width, 1))
        same = stride == 1 and inputs == 4 * width
        self.shortcut = nn.Identity() if same else nn.Sequential(*convolution(inputs, 4 * width, 1, stride))
        self.relu = nn.ReLU(True)

    def forward(self, x):
        return self.relu(self.branch(x) + self.shortcut(x))


def resnet50(classes):
    layers = [*convolution(3, 64, 7, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, 2 if stage > 0 and block == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def vgg16(classes):
    """Configuration D without batch norm; one linear layer behind it, for small images."""
    layers, inputs = [], 3
    for stage, convolutions in enumerate((2, 2, 3, 3, 3)):
        for _ in range(convolutions):
            layers += [nn.Conv2d(inputs, 64 << min(stage, 3), 3, padding=1), nn.ReLU(True)]
            inputs = 64 << min(stage, 3)
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs, classes))


def resident_mib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=("resnet50", "vgg16"))
    for name in ("image_size", "batch", "steps", "threads"):
        parser.add_argument(name, type=int)
    parser.add_argument("--bf16", action="store_true", help="autocast to bfloat16")
    parser.add_argument("--evaluate", type=int, default=0, metavar="BATCHES", help="evaluates these behind the steps")
    parser.add_argument("--store", help="file that the ranks meet at")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    o = parser.parse_args()

    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    start = resident_mib()
    classes = 256 if o.image_size > 64 else 10
    model = globals()[o.model](classes).to(memory_format=torch.channels_last)
    if o.store:
        torch.distributed.init_process_group("gloo", init_method=f"file://{o.store}", rank=o.rank, world_size=o.ranks)
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    loss_of = nn.CrossEntropyLoss()
    images = torch.randn(o.batch, 3, o.image_size, o.image_size).to(memory_format=torch.channels_last)
    labels = torch.randint(0, classes, (o.batch,))
    seconds = []
    before = time.time() - STARTED
    for _ in range(o.steps + 1):
        begin = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=o.bf16):
            loss = loss_of(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - begin)
    model.eval()
    begin = time.perf_counter()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=o.bf16):
        for _ in range(o.evaluate):
            (model(images).argmax(1) == labels).sum().item()
    evaluation = o.evaluate * o.batch * o.ranks / (time.perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    if o.rank == 0:
        print(json.dumps({"seconds": seconds[1:], "peak_mib": peak, "beyond_start_mib": peak - start,
                          "start_s": before, "first_step_s": seconds[0], "evaluation_images_per_s": evaluation,
                          "version": torch.__version__}))
    if o.store:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
