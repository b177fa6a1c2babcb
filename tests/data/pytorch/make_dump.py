#!/usr/bin/env python3
"""Writes what PyTorch computes for narrow networks, for tests/unit/trainer/backend/cpu/pytorch_test.cpp to compare with.

usage: make_dump.py [DIRECTORY [NAME…]]      DIRECTORY: default, this script's own; NAME: of DUMPS, default all
Needs: pip install torch numpy (CPU builds do; made with the version that the files name).

Networks and formulas are written down here a second time, from their papers, with PyTorch's own modules: nothing is
shared with the trainer but the numbers below, which both sides make from integers:

  hash(name)      FNV-1a, 64 bits, of the name's bytes
  u(name, i)      SplitMix64 of hash(name) + (i + 1) × 0x9e3779b97f4a7c15, its upper 24 bits × 2^-23 − 1: in [−1, 1),
                  exact in fp32
  weight[i]       float32(u(name, i) × sqrt(6 / fan_in)), the product in float64; fan_in = the product of all extents
                  but the first
  scale[i]        float32(1 + 0.25 u), shift and bias[i] = float32(0.1 u)
  image value i   u("images-SEED-STEP", i)
  label of n      the 24 bits behind u("labels-SEED-STEP", n), modulo 10

PyTorch computes in float64, so that its own rounding is no part of a comparison. SEED is the first for which no ReLU
and no maximum of the first step comes nearer to its kink than 3e-6: fp32 then sees the same side of all of them.

A file is one line of JSON, then float32 values, little-endian, in the order of "tensors": the first step's logits, each
parameter's gradient in the published layout, and the running statistics after it. Of tensors with more than 4096 values
each one at a multiple of "every" is there. "losses": mean loss of each of ten
steps of momentum SGD.
"""
import json
import math
import pathlib
import sys

import numpy
import torch
from torch import nn

MASK = (1 << 64) - 1
BATCH, SIZE, CLASSES, STEPS = 4, 32, 10, 10
RATE, MOMENTUM, DECAY = 0.002, 0.9, 5e-4
LARGE = 4096  # values; larger tensors are sampled


def fnv(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def bits(name, count):
    i = numpy.arange(1, count + 1, dtype=numpy.uint64)
    z = numpy.uint64(fnv(name)) + i * numpy.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return (z ^ (z >> numpy.uint64(31))) >> numpy.uint64(40)


def uniform(name, count):
    return bits(name, count).astype(numpy.float64) * 2.0**-23 - 1


def batch_of(seed, step):
    images = uniform(f"images-{seed}-{step}", BATCH * 3 * SIZE * SIZE).reshape(BATCH, 3, SIZE, SIZE)
    labels = bits(f"labels-{seed}-{step}", BATCH) % numpy.uint64(CLASSES)
    return torch.from_numpy(images), torch.from_numpy(labels.astype(numpy.int64))


class BasicBlock(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.join = nn.ReLU()
        self.downsample = None
        if stride != 1 or inputs != width:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.join(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    """Four stages of two basic blocks; a stem for small images."""

    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        inputs = width
        for stage in range(4):
            outputs = width << stage
            blocks = [BasicBlock(inputs, outputs, 1 if stage == 0 else 2), BasicBlock(outputs, outputs, 1)]
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
            inputs = outputs
        self.fc = nn.Linear(inputs, CLASSES)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        for stage in range(4):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.fc(x.mean((2, 3)))


class Vgg16(nn.Module):
    """Configuration D, one linear layer behind it: the form for small images."""

    def __init__(self, width):
        super().__init__()
        layers, inputs = [], 3
        for stage, convolutions in enumerate((2, 2, 3, 3, 3)):
            outputs = width << min(stage, 3)
            for _ in range(convolutions):
                layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
                inputs = outputs
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(inputs, CLASSES)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def fill(model):
    norms = {name for name, module in model.named_modules() if isinstance(module, nn.BatchNorm2d)}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = uniform(name, parameter.numel())
            if name.endswith(".bias"):
                values = 0.1 * values
            elif name.rpartition(".")[0] in norms:
                values = 1 + 0.25 * values
            else:
                values = values * math.sqrt(6 / (parameter.numel() // parameter.shape[0]))
            values = values.astype(numpy.float32).astype(numpy.float64)
            parameter.copy_(torch.from_numpy(values.reshape(parameter.shape)))


def watch_kinks(model, distances):
    def relu(_, inputs, __):
        distances.append(inputs[0].abs().min().item())

    def pool(_, inputs, __):
        windows = inputs[0].unfold(2, 2, 2).unfold(3, 2, 2).flatten(4)
        first, second = windows.topk(2, 4).values.unbind(4)
        lead = (first - second)[first > 0]  # four zeros of a ReLU pass nothing on
        if lead.numel():
            distances.append(lead.min().item())

    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.register_forward_hook(relu)
        if isinstance(module, nn.MaxPool2d):
            module.register_forward_hook(pool)


def dump(name, make, directory, every):
    for seed in range(1000):
        model = make().double().train()
        fill(model)
        distances = []
        watch_kinks(model, distances)
        images, labels = batch_of(seed, 0)
        logits = model(images)
        nearest = min(distances)
        if nearest >= 3e-6:
            break
    else:
        sys.exit(f"{name}: every seed comes near to a kink")

    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM, weight_decay=DECAY)
    tensors = [("logits", logits.detach().clone())]
    losses = []
    for step in range(STEPS):
        if step > 0:
            images, labels = batch_of(seed, step)
            logits = model(images)
        loss = nn.functional.cross_entropy(logits, labels)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            tensors += [(f"gradient of {n}", p.grad.clone()) for n, p in model.named_parameters()]
            tensors += [(n, b.clone()) for n, b in model.named_buffers() if "running" in n]
        optimizer.step()

    tensors = [(n, t if t.numel() <= LARGE else t.flatten()[::every].contiguous()) for n, t in tensors]
    header = {"model": name, "every": every, "torch": torch.__version__, "seed": seed, "batch": BATCH, "rate": RATE,
              "momentum": MOMENTUM, "weight_decay": DECAY, "losses": losses,
              "tensors": [{"name": n, "count": t.numel()} for n, t in tensors]}
    file = directory / f"{name}.dump"
    with open(file, "wb") as out:
        out.write(json.dumps(header).encode() + b"\n")
        for _, tensor in tensors:
            out.write(tensor.numpy().astype("<f4").tobytes())
    print(f"{file}: {file.stat().st_size} bytes, seed {seed}, nearest kink {nearest:.2g}, loss {losses[0]:.6f}")


DUMPS = {
    "resnet18": (lambda: ResNet18(4), 1),
    "vgg16": (lambda: Vgg16(4), 1),
    # So wide that the trainer computes its later stages by Winograd's algorithm, in blocks of 8 and of 16 channels.
    "resnet18_wider": (lambda: ResNet18(16), 64),
}

if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__)
    target = target if target.is_dir() else target.parent
    torch.set_num_threads(1)
    for name in sys.argv[2:] or DUMPS:
        make, every = DUMPS[name]
        dump(name, make, target, every)
