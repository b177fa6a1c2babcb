#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: gradients_test.py PACELINE-TRAIN [--width W] [--draws N] [MODEL…]

The gradients of a run's first iteration, and PyTorch's in fp32, against PyTorch's in float64, from the same weights and
images. Prints the relative errors of each model and checks them. Exit status 77 where torch or numpy is missing.

The run has one iteration over a whole drawn data set of 32-pixel images, with a learning rate so small that no weight
changes. Its checkpoint therefore has the initial weights, and the momentum in it is the gradient.

In most draws some value lies so near to the kink of a ReLU or of a maximum that rounding moves it to the other side.
That changes the gradient by about 1e-3, in PyTorch as well. The smallest error of several draws is therefore that of
the arithmetic.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
    from torch import nn
except ImportError:
    print("torch or numpy is not installed")
    sys.exit(77)

BATCH, CLASSES = 5, 10
MOST = 10  # times PyTorch's error; 4.4 was seen with Winograd's algorithm and 1.5 without


class Block(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or inputs != width:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    """With the first layer for small images."""

    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        inputs = width
        for stage in range(4):
            outputs = width << stage
            blocks = [Block(inputs, outputs, 1 if stage == 0 else 2), Block(outputs, outputs, 1)]
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
            inputs = outputs
        self.fc = nn.Linear(inputs, CLASSES)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        for stage in range(4):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.fc(x.mean((2, 3)))


class Vgg16(nn.Module):
    """With one linear layer, for small images."""

    def __init__(self, width, batch_norm):
        super().__init__()
        layers, inputs = [], 3
        for stage, convolutions in enumerate((2, 2, 3, 3, 3)):
            outputs = width << min(stage, 3)
            for _ in range(convolutions):
                layers.append(nn.Conv2d(inputs, outputs, 3, padding=1))
                layers += [nn.BatchNorm2d(outputs)] if batch_norm else []
                layers.append(nn.ReLU())
                inputs = outputs
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(inputs, CLASSES)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


MODELS = {
    "resnet18": ResNet18,
    "vgg16": lambda width: Vgg16(width, False),
    "vgg16_bn": lambda width: Vgg16(width, True),
}


def images_of(directory, files="data_batch_*.bin"):
    """Images and labels of a drawn CIFAR-10 set, normalised with the means and deviations of its training images."""
    def records(pattern):
        read = [numpy.fromfile(file, numpy.uint8) for file in sorted(directory.glob(pattern))]
        return numpy.concatenate(read).reshape(-1, 3073)

    def pixels(of):
        return of[:, 1:].reshape(-1, 3, 32, 32)

    train = pixels(records("data_batch_*.bin")).astype(numpy.float64)
    # The trainer's constants are fp32.
    mean = train.mean((0, 2, 3)).astype(numpy.float32)
    scale = (1 / train.std((0, 2, 3))).astype(numpy.float32)
    wanted = records(files)
    images = (pixels(wanted).astype(numpy.float32) - mean[:, None, None]) * scale[:, None, None]
    return torch.from_numpy(images), torch.from_numpy(wanted[:, 0].astype(numpy.int64))


def checkpoint(file):
    """The weights and the optimizer's momentum of a checkpoint, by name."""
    content = file.read_bytes()
    at = content.index(b"\n") + 1
    length = int.from_bytes(content[at:at + 8], "little")
    header = json.loads(content[at + 8:at + 8 + length])
    at += 8 + length

    def take():
        nonlocal at
        tensors = {}
        for parameter in header["parameters"]:
            count = int(numpy.prod(parameter["shape"]))
            values = numpy.frombuffer(content, "<f4", count, at).reshape(parameter["shape"])
            tensors[parameter["name"]] = torch.from_numpy(values.copy())
            at += 4 * count
        return tensors

    weights = take()
    at += 4 * header["statistics"]
    return weights, take()


def pytorch(model, weights, images, labels, dtype):
    model = model.to(dtype).train()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
    nn.functional.cross_entropy(model(images.to(dtype)), labels).backward()
    return {name: parameter.grad.double() for name, parameter in model.named_parameters()}


def error(gradients, exact):
    """The largest ‖Δ‖ ÷ ‖exact‖ of a parameter, and its name. The bias before a batch norm has no gradient but rounding."""
    return max((((gradients[name].double() - exact[name]).norm() / exact[name].norm()).item(), name)
               for name in exact if exact[name].norm() > 1e-9)


def errors_of(given, model, directory, draw):
    """The errors of one draw, by who computed the gradient."""
    errors = {}
    images, labels = images_of(directory / f"{draw}")
    for how, options in {"ours": [], "exact": ["--exact"]}.items():
        file = directory / f"{model}.{how}.{draw}"
        subprocess.run([given.train, "--data", directory / f"{draw}", "--model", model, "--width", str(given.width),
                        "--batch-size", str(BATCH), "--iterations", "1", "--augment", "none", "--threads", "1",
                        "--lr", "1e-30", "--warmup", "none", "--schedule", "constant", "--weight-decay", "0",
                        "--eval-every", "0", "--checkpoint", file] + options, check=True, stdout=subprocess.DEVNULL)
        weights, gradient = checkpoint(file)
        file.unlink()
        if how == "ours":
            networks = [MODELS[model](int(64 * given.width)) for _ in range(2)]
            exact = pytorch(networks[0], weights, images, labels, torch.float64)
            errors["PyTorch"] = error(pytorch(networks[1], weights, images, labels, torch.float32), exact)
        errors[how] = error(gradient, exact)
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--width", type=float, default=0.5)
    parser.add_argument("--draws", type=int, default=6)
    given = parser.parse_args()
    torch.set_num_threads(1)
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        for draw in range(1, given.draws + 1):
            subprocess.run([given.train, "make-dataset", directory / f"{draw}", "--train", str(BATCH), "--test", "10",
                            "--seed", str(draw)], check=True, stdout=subprocess.DEVNULL)
        for model in given.models:
            draws = [errors_of(given, model, directory, draw) for draw in range(1, given.draws + 1)]
            least = {how: min(errors[how] for errors in draws) for how in draws[0]}
            for how in least:
                print(f"{model:10} {how:8} least {least[how][0]:.1e} ({least[how][1]}), in each draw",
                      *(f"{errors[how][0]:.1e}" for errors in draws), flush=True)
            wrong += [(model, how) for how in ("ours", "exact") if least[how][0] > MOST * least["PyTorch"][0]]
    sys.exit(f"more than {MOST} times PyTorch's error: {wrong}" if wrong else 0)


if __name__ == "__main__":
    main()
