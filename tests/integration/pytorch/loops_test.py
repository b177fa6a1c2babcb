#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: loops_test.py PACELINE SOURCES [TEST…]

The iterations of PyTorch scripts with unusual loops, under `paceline record --pytorch`. Ends with 77 where the interpreter has
no torch.
"""
import sys
import unittest

from pytorch_test import PYTHON, Recorded, end_without_torch

LOADERS = """
import paceline
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
class Stream(IterableDataset):
    def __iter__(self):
        for _ in range(20):
            yield torch.ones(4)
model = torch.nn.Linear(4, 1)
"""


class Loops(Recorded):
    def record_loop(self, text):
        """The finished iterations, their number with an evaluation inside, and the ranges outside all iterations."""
        self.assert_nothing_said(self.record(PYTHON, self.script(LOADERS + text)))
        rows = [row for row in self.events() if row["kind"] == "slice" and row["track"] == "main thread"]
        iterations = [row for row in rows if row["name"] == "iteration"]
        self.assertFalse([row for row in iterations if "unfinished" in row["args"] or row["depth"] != "0"])
        self.assertEqual(self.report()["runs"][0]["iterations"]["count"], len(iterations))
        outside = [row["name"] for row in rows if row["depth"] == "0" and row["name"] not in ("iteration", "garbage collection")]
        return len(iterations), outside

    def test_a_loader_of_unknown_length_ends_its_last_iteration(self):
        for workers in 0, 2:
            count, outside = self.record_loop(f"""
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    model.train()
    for image in DataLoader(Stream(), 4, num_workers={workers}):
        optimizer.zero_grad()
        model(image).sum().backward()
        optimizer.step()
    with paceline.phase("after"):
        pass
    model.eval()
    with torch.no_grad():
        for image in DataLoader(Stream(), 4):
            model(image)
""")
            # Each worker has the whole stream.
            self.assertEqual(count, 2 * 5 * max(1, workers))
            # Before the first batch of an epoch there is no iteration. The search for another batch after the last one
            # belongs to its iteration.
            self.assertEqual(outside, (["preprocess", "after"] + ["preprocess", "evaluate"] * 5 + ["preprocess"]) * 2)
            self.run_program("rm", "-r", "run")

    def test_a_loop_without_an_optimizer_has_an_iteration_for_each_batch(self):
        for data in "TensorDataset(torch.ones(20, 4))", "Stream()":
            count, outside = self.record_loop(f"""
for epoch in range(2):
    for image in DataLoader({data}, 4):
        image = image[0] if isinstance(image, list) else image
        model(image).sum().backward()
        model(image).mean().backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
""")
            self.assertEqual(count, 10)
            self.assertEqual(set(outside), {"preprocess"})
            config = self.report()["runs"][0]["config"]
            self.assertEqual((config["model"], config["global_batch"], "optimizer" in config), ("Linear", 4, False))
            self.run_program("rm", "-r", "run")

    def test_a_loop_of_functions_has_an_iteration_for_each_batch(self):
        count, _ = self.record_loop("""
try:
    from torch.func import functional_call, grad
except ImportError:  # before torch 2
    from torch.nn.utils.stateless import functional_call
    def grad(loss_of):
        def gradients(weights, image):
            weights = {name: weight.requires_grad_() for name, weight in weights.items()}
            return dict(zip(weights, torch.autograd.grad(loss_of(weights, image), list(weights.values()))))
        return gradients
weights = {name: weight.detach() for name, weight in model.named_parameters()}
gradients_of = grad(lambda weights, image: functional_call(model, weights, (image,)).sum())
for (image,) in DataLoader(TensorDataset(torch.ones(20, 4)), 4):
    gradients = gradients_of(weights, image)
    weights = {name: (weight - 0.1 * gradients[name]).detach() for name, weight in weights.items()}
""")
        self.assertEqual(count, 5)

    def test_another_thread_trains_and_a_further_one_fetches(self):
        """The trace has the iterations on the thread that trains, whichever fetches the batches."""
        loop = """
import queue, threading
optimizer, batches = torch.optim.SGD(model.parameters(), lr=0.1), queue.Queue()
def fetch():
    for (image,) in DataLoader(TensorDataset(torch.ones(20, 4)), 4):
        batches.put(image)
    batches.put(None)
def train():
    while (image := batches.get()) is not None:
        optimizer.zero_grad()
        model(image).sum().backward()
        optimizer.step()
    with torch.no_grad():
        model(torch.ones(4, 4))
fetching = threading.Thread(target=fetch)
fetching.start()
"""
        for how in "fetching.join(); train()", "training = threading.Thread(target=train); training.start(); training.join()":
            count, outside = self.record_loop(loop + how)
            self.assertEqual((count, outside), (5, ["evaluate"]))
            self.run_program("rm", "-r", "run")

    def test_a_thread_that_trains_ends_its_last_iteration(self):
        """It leaves its loop before the last batch, and the process ends without any clean-up, as Ray's workers do."""
        count, _ = self.record_loop("""
import os, threading
def train():
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, (image,) in enumerate(DataLoader(TensorDataset(torch.ones(40, 4)), 4)):
        optimizer.zero_grad()
        model(image).sum().backward()
        optimizer.step()
        if number == 4:
            break
training = threading.Thread(target=train)
training.start()
training.join()
os._exit(0)
""")
        self.assertEqual(count, 5)

    def test_ranks_that_a_script_spawns_are_those_of_its_process_group(self):
        """Neither the script that starts them nor their environment says so; the last rank is the first to start."""
        for variables in "", "os.environ.update(RANK=str(rank), WORLD_SIZE='2')":
            recorded = self.record(PYTHON, self.script(f"""
import os
import torch
def rank_of(number, file):
    rank = 1 - number
    {variables}
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", "file://" + file, rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        model(torch.ones(8, 4)).sum().backward()
        optimizer.step()
    torch.distributed.destroy_process_group()
    os.write(1, f"rank {{rank}}: {{os.getpid()}}\\n".encode())  # At once: the ranks share the pipe.
if __name__ == "__main__":
    torch.multiprocessing.spawn(rank_of, (os.path.abspath("meeting"),), nprocs=2)
"""))
            self.assert_nothing_said(recorded)
            self.assertEqual(self.report()["runs"][0]["iterations"]["count"], 5)
            self.assertEqual(sorted({f"rank {row['rank']}: {row['pid']}" for row in self.events() if row["pid"]}),
                             sorted(recorded.stdout.split("\n")[:-1]))
            self.run_program("rm", "-r", "run")


if __name__ == "__main__":
    end_without_torch()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
