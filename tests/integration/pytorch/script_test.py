#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: script_test.py PACELINE SOURCES [TEST…]

PyTorch scripts that mark their steps and phases themselves (`import paceline`), with and without the recorder and the
installed package. Ends with 77 where the interpreter has no torch.
"""
import pathlib
import sys
import unittest

from pytorch_test import PACELINE, PYTHON, Recorded, end_without_torch

PACKAGE = str(pathlib.Path(PACELINE).resolve().parents[1] / "python")  # of the build tree, as it is in a wheel

SCRIPT = """
import paceline
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

@paceline.phase("augment")
def augment(image):
    return image + 1

for epoch in range(2):
    for (image,) in DataLoader(TensorDataset(torch.randn(24, 4)), 4):
        with paceline.step():
            image = augment(image)
            with paceline.phase("forward"):
                loss = model(image).sum()
            loss.backward()
            optimizer.step()
            optimizer.step()
    try:
        with paceline.phase("validation"), torch.no_grad():
            model.eval()(torch.ones(5))
    except RuntimeError as error:
        print(type(error).__name__)
    model.train()
print(f"loss {loss.item():.9f}, active {paceline.active()}")
"""


class Marks(Recorded):
    def counts(self):
        names = [(row["name"], row["args"].count('"script"')) for row in self.events() if row["kind"] == "slice"]
        return {of: names.count((of, 1)) for of in ("augment", "forward", "validation")}

    def test_steps_and_phases_with_and_without_the_hooks_compute_the_same(self):
        program = self.script(SCRIPT)
        alone = self.run_program(PYTHON, program, PYTHONPATH=PACKAGE).stdout
        self.assertRegex(alone, "RuntimeError\nRuntimeError\nloss .*, active False")
        marked = {"augment": 12, "forward": 12, "validation": 2}
        for options in ({}, {"PYTHONPATH": PACKAGE}):  # the recorder brings the module along where it is not installed
            recorded = self.record(PYTHON, program, **options)
            self.assert_nothing_said(recorded)
            self.assertEqual(recorded.stdout, alone.replace("False", "True"))
            self.assertEqual(self.counts(), marked)
            iterations = [row for row in self.events() if row["name"] == "iteration"]
            self.assertEqual([row["depth"] for row in iterations], ["0"] * 12)
            self.assertFalse(any("unfinished" in row["args"] for row in iterations))
            phases = self.report()["runs"][0]["per_rank"][0]["phases"]
            for phase in ("preprocess", "forward", "backward", "optimizer", "evaluate"):
                self.assertGreater(phases[phase], 0, phase)
            self.run_program("rm", "-r", "run")

        recorded = self.run_program(PACELINE, "record", "-o", "run", "--", PYTHON, program, PYTHONPATH=PACKAGE)
        self.assertEqual(recorded.stdout, alone.replace("False", "True"))
        self.assertEqual(self.counts(), marked)
        self.assertEqual(self.names().count("iteration"), 12)
        self.assertEqual(self.report()["runs"][0]["iterations"]["count"], 12)

    def test_phases_alone_make_no_iterations_without_the_hooks(self):
        program = self.script("import paceline\nfor _ in range(3):\n    with paceline.phase('forward'): pass\n")
        self.run_program(PACELINE, "record", "-o", "run", "--", PYTHON, program, PYTHONPATH=PACKAGE)
        self.assertEqual(self.names(), ["forward"] * 3)

    def test_a_marked_phase_lies_inside_the_iteration_that_begins_with_it(self):
        self.record(PYTHON, self.script("""
import paceline
import torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with paceline.phase("epoch"):
    for _ in range(3):
        with paceline.phase("forward pass"):
            loss = model(torch.ones(2, 4)).sum()
        loss.backward()
        optimizer.step()
        with paceline.phase("Checkpoint"):
            pass
"""))
        depths = {}
        for row in self.events():
            if row["kind"] == "slice":
                depths.setdefault(row["name"], []).append(int(row["depth"]))
        self.assertEqual(depths["epoch"], [0])
        self.assertEqual(depths["iteration"], [1] * 3)
        self.assertEqual(depths["forward pass"], [2] * 3)
        self.assertEqual(depths["forward"], [3] * 3)
        self.assertEqual(depths["Checkpoint"], [1] * 3)

    def test_the_library_that_reads_traces_is_loaded_when_it_is_used(self):
        ended = self.run_program(PYTHON, self.script("""
import sys
import paceline
with paceline.step():
    pass
print("paceline._core" in sys.modules)
print(paceline.Error.__name__, paceline.Recorder.__name__, len(paceline.__version__.split(".")))
"""), PYTHONPATH=PACKAGE)
        self.assertEqual(ended.stdout, "False\nError Recorder 3\n")


if __name__ == "__main__":
    end_without_torch()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
