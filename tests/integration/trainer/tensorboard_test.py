#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: tensorboard_test.py PACELINE-TRAIN

TensorBoard's reader finds the figures of the log in the event file. Exit status 77 where tensorboard is missing
(pip install tensorboard).
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    print("skipped: tensorboard is not installed")
    sys.exit(77)

with tempfile.TemporaryDirectory() as name:
    directory = pathlib.Path(name)
    subprocess.run([sys.argv[1], "--synthetic", "--image-size", "16", "--width", "0.125", "--train-images", "24",
                    "--test-images", "8", "--batch-size", "8", "--epochs", "2", "--threads", "1",
                    "--log", directory / "log.jsonl", "--tensorboard", directory / "events"],
                   check=True, stdout=subprocess.DEVNULL)
    log = [json.loads(line) for line in open(directory / "log.jsonl", encoding="utf-8")]
    reader = EventAccumulator(str(directory / "events"))
    reader.Reload()
    kinds = {
        "iteration": ["loss", "seconds", "learning_rate", "gradient_norm"],
        "epoch": ["train_loss", "train_accuracy", "images_per_s", "test_loss", "test_accuracy", "test_top5_accuracy"],
    }
    tags = {f"{kind}/{key}" for kind, keys in kinds.items() for key in keys}
    assert set(reader.Tags()["scalars"]) == tags, reader.Tags()
    for kind, keys in kinds.items():
        lines = [line for line in log if line["event"] == kind]
        for key in keys:
            scalars = reader.Scalars(f"{kind}/{key}")
            steps = [line["iteration"] + 1 if kind == "iteration" else 3 * line["epoch"] for line in lines]
            assert [one.step for one in scalars] == steps, (key, scalars)
            for one, line in zip(scalars, lines):
                assert abs(one.value - line[key]) <= 1e-6 * abs(line[key]), (key, one, line)
                assert abs(one.wall_time - line["unix_s"]) < 5, (key, one, line)
