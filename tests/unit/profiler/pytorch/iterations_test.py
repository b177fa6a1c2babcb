#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: iterations_test.py PACELINE

Where the hooks for PyTorch begin and end iterations. Each test records a small program that calls what the hooks call.
Needs no torch.
"""
import csv
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PACELINE = sys.argv[1]
PROGRAM = """
import os, sys, threading
sys.path[:0] = [folder for folder in os.environ["PYTHONPATH"].split(os.pathsep) if folder]
from paceline_pytorch import description, ranges, script as paceline
from paceline_pytorch.iterations import iterations
phases = ranges.phases
description.description.is_marked = True
sys.modules["torch"] = None  # else the child of a fork would import it, where it is installed, to describe the run

class Optimizer:
    pass

optimizer, other = Optimizer(), Optimizer()

def step(optimizer=optimizer):
    if phases.is_in_step():
        return
    iterations.before_step(optimizer)
    phases.begin_step()
    if phases.end_step():
        iterations.after_step(optimizer)

def next_batch():
    phases.begin_batch(True)
    phases.end_inside()

def forward():
    phases.begin_forward(True)
    phases.end_inside()

iterations.made(optimizer)
"""


class Iterations(unittest.TestCase):
    def iterations_of(self, program):
        """The iterations that ended, and those that did not."""
        with tempfile.TemporaryDirectory() as folder:
            def run(*command):
                environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
                subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)

            pathlib.Path(folder, "program.py").write_text(PROGRAM + program)
            run(PACELINE, "record", "--pytorch", "--counters", "0", "-o", "run", "--", sys.executable, "program.py")
            run(PACELINE, "export", "--to", "csv", "-o", "run.csv", "run")
            with open(os.path.join(folder, "run.csv"), newline="") as file:
                rows = [row["args"] for row in csv.DictReader(file) if row["name"] == "iteration" and row["kind"] == "slice"]
        unfinished = sum('"unfinished"' in args for args in rows)
        return len(rows) - unfinished, unfinished

    def test_an_iteration_begins_with_the_first_work_after_a_step(self):
        self.assertEqual(self.iterations_of("for _ in range(2): next_batch(); forward(); step()"), (1, 1))

    def test_batches_before_one_step_are_one_iteration(self):
        self.assertEqual(self.iterations_of("""
for _ in range(2):
    for _ in range(3):
        next_batch()
        forward()
    step()
"""), (1, 1))

    def test_without_an_optimizer_a_batch_after_a_backward_begins_an_iteration(self):
        loop = """
iterations.optimizers.clear(); phases.reset()
for _ in range(3):
    next_batch(); forward()
    next_batch(); forward(); phases.begin_work()
    ranges.hook("around_backward", forward)()
    ranges.hook("around_backward", forward)()
"""
        self.assertEqual(self.iterations_of(loop), (2, 1))
        self.assertEqual(self.iterations_of(loop + "phases.begin_interlude()"), (3, 0))

    def test_a_child_of_a_process_with_an_optimizer_accumulates(self):
        self.assertEqual(self.iterations_of("""
child = os.fork()
if child:
    os.waitpid(child, 0)
else:
    for _ in range(2):
        next_batch(); ranges.hook("around_backward", forward)()
        next_batch(); ranges.hook("around_backward", forward)()
        step()
"""), (1, 1))

    def test_the_end_of_a_loader_of_unknown_length_begins_no_iteration(self):
        self.assertEqual(self.iterations_of("""
for epoch in range(2):
    for _ in range(3):
        phases.seek_batch(); phases.found_batch()
        forward(); step()
    phases.seek_batch(); phases.end_inside(); phases.begin_interlude()
"""), (6, 0))

    def test_two_optimizers_that_step_in_turn_share_an_iteration(self):
        self.assertEqual(self.iterations_of("""
iterations.made(other)
for _ in range(3):
    for each in (optimizer, other):
        forward()
        step(each)
"""), (2, 1))

    def test_the_next_batch_ends_an_iteration_in_which_one_of_two_optimizers_stepped(self):
        self.assertEqual(self.iterations_of("""
iterations.made(other)
for batch in range(4):
    next_batch()
    step()
    if batch % 2:
        forward()
        step(other)
"""), (3, 1))

    def test_an_optimizer_that_is_never_used_does_not_join_iterations(self):
        # The first one ends when its optimizer steps again; from then on the forward decides.
        self.assertEqual(self.iterations_of("iterations.made(other)\nfor _ in range(4): forward(); step()"), (3, 1))

    def test_an_optimizer_that_is_made_later_shares_the_iterations_after_its_first_step(self):
        self.assertEqual(self.iterations_of("""
for _ in range(3): forward(); step()
iterations.made(other)
for _ in range(3): forward(); step(); step(other)
"""), (6, 1))

    def test_an_evaluation_ends_an_iteration_that_has_stepped(self):
        self.assertEqual(self.iterations_of("forward(); phases.begin_interlude()"), (0, 1))
        self.assertEqual(self.iterations_of("forward(); step(); phases.begin_interlude(); phases.begin_interlude()"), (1, 0))

    def test_iterations_do_not_change_inside_a_range_of_the_hooks(self):
        self.assertEqual(self.iterations_of("""
forward(); step()
phases.enter_checkpoint()
next_batch(); forward(); phases.begin_interlude()
phases.leave()
"""), (0, 1))

    def test_other_threads_have_no_iterations(self):
        self.assertEqual(self.iterations_of("""
forward(); step()
thread = threading.Thread(target=lambda: (next_batch(), step(), phases.begin_interlude()))
thread.start()
thread.join()
"""), (0, 1))

    def test_a_forked_child_counts_its_own_iterations(self):
        self.assertEqual(self.iterations_of("""
forward()
child = os.fork()
forward(); step(); phases.begin_interlude()
if child: os.waitpid(child, 0)
"""), (2, 0))

    def test_steps_that_the_script_marks_are_the_iterations(self):
        # The first one has begun with the batch that was fetched before it.
        self.assertEqual(self.iterations_of("""
for _ in range(3):
    next_batch()
    with paceline.step(), paceline.phase("forward"):
        forward(); step()
    forward(); phases.begin_interlude()
"""), (3, 0))
        self.assertEqual(self.iterations_of("""
@paceline.step()
def train(again):
    forward(); step(); step()
    if again: train(False)
forward(); step()
for _ in range(2): train(True)
thread = threading.Thread(target=train, args=(True,))
thread.start()
thread.join()
"""), (3, 0))

    def test_a_phase_that_the_script_marks_holds_no_begin_or_end_of_an_iteration(self):
        self.assertEqual(self.iterations_of("""
for _ in range(3):
    with paceline.phase("forward"): forward()
    step()
with paceline.phase("validation"): pass
"""), (3, 0))

    def test_a_child_that_is_forked_inside_a_step_marks_its_own(self):
        self.assertEqual(self.iterations_of("""
with paceline.step():
    forward()
    child = os.fork()
for _ in range(2):
    with paceline.step(): step()
if child: os.waitpid(child, 0)
"""), (5, 0))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
