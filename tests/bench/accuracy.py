#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: accuracy.py PACELINE-TRAIN [--seeds N] [--epochs N] [--width W]

Test accuracy of ResNet-18 on the drawn data set, trained by paceline-train and by PyTorch with the same settings and with
N seeds each, and the 95 % interval of the difference. Ends with 1 if 0 lies outside of that interval. Needs torch and numpy.

Both draw their own initial weights (the same distributions) and their own order of the images; nothing is
cropped or mirrored. PyTorch takes the learning rates of the trainer's log, whose schedule falls along a cosine.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration/trainer"))
from gradients_test import ResNet18, images_of  # noqa: E402

BATCH, RATE, MOMENTUM, DECAY = 32, 0.05, 0.9, 5e-4
# Student's t for 95 % by degrees of freedom.
T95 = {2: 4.303, 4: 2.776, 6: 2.447, 8: 2.306, 10: 2.228, 14: 2.145, 18: 2.101}


def ours(given, data, seed, log):
    subprocess.run([given.train, "--data", data, "--model", "resnet18", "--width", str(given.width), "--batch-size",
                    str(BATCH), "--epochs", str(given.epochs), "--augment", "none", "--lr", str(RATE), "--momentum",
                    str(MOMENTUM), "--weight-decay", str(DECAY), "--threads", "1", "--seed", str(seed), "--eval-every",
                    "0", "--log", log], check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in open(log, encoding="utf-8")]
    rates = [line["learning_rate"] for line in lines if line["event"] == "iteration"]
    return lines[-1]["test_accuracy"], rates


def pytorch(given, train, test, seed, rates):
    torch.manual_seed(seed)
    model = ResNet18(int(64 * given.width)).train()
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.01)
            nn.init.zeros_(module.bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM, weight_decay=DECAY)
    images, labels = train
    rates = iter(rates)
    for _ in range(given.epochs):
        order = torch.randperm(len(images))
        for first in range(0, len(images) - BATCH + 1, BATCH):
            batch = order[first:first + BATCH]
            optimizer.param_groups[0]["lr"] = next(rates)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
    with torch.no_grad():
        return (model.eval()(test[0]).argmax(1) == test[1]).double().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--width", type=float, default=0.25)
    parser.add_argument("--images", type=int, default=800)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        data = pathlib.Path(name) / "data"
        subprocess.run([given.train, "make-dataset", data, "--train", str(given.images), "--test", "500"], check=True,
                       stdout=subprocess.DEVNULL)
        train = images_of(data)
        test = images_of(data, "test_batch.bin")
        rows = {"paceline-train": [], "PyTorch": []}
        for seed in range(1, given.seeds + 1):
            accuracy, rates = ours(given, data, seed, pathlib.Path(name) / "log")
            rows["paceline-train"].append(accuracy)
            rows["PyTorch"].append(pytorch(given, train, test, seed, rates))
            print(f"seed {seed}:", *(f"{who} {100 * row[-1]:.1f} %" for who, row in rows.items()), flush=True)
    for who, row in rows.items():
        print(f"{who:15} {100 * statistics.mean(row):.2f} ± {100 * statistics.stdev(row):.2f} %")
    a, b = rows.values()
    n = given.seeds
    half = T95[2 * n - 2] * math.sqrt((statistics.variance(a) + statistics.variance(b)) / n)
    difference = statistics.mean(a) - statistics.mean(b)
    print(f"difference {100 * difference:+.2f} %, 95 % interval {100 * (difference - half):+.2f} to "
          f"{100 * (difference + half):+.2f} %")
    sys.exit(0 if abs(difference) <= half else 1)


if __name__ == "__main__":
    main()
