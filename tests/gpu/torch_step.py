#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: torch_step.py [--kineto FILE.json]

Twelve training steps of a small ResNet with autocast and channels_last on one GPU. The same kernels run each time: nothing
is chosen by measuring. With --kineto PyTorch's profiler writes its trace of the whole program.
"""
import argparse
import contextlib

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.main = nn.Sequential(nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
                                  nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        return torch.relu(x + self.main(x))


def train():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1), *(Block(64) for _ in range(4)), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(64, 10)).cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    for _ in range(12):
        images = torch.randn(64, 3, 64, 64).cuda(non_blocking=True).to(memory_format=torch.channels_last)
        labels = torch.randint(10, (64,)).cuda()
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = loss_of(model(images), labels)
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()


parser = argparse.ArgumentParser()
parser.add_argument("--kineto")
kineto = parser.parse_args().kineto
activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
with torch.profiler.profile(activities=activities) if kineto else contextlib.nullcontext() as profile:
    train()
if kineto:
    profile.export_chrome_trace(kineto)
