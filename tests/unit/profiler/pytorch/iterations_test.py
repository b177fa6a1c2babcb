#!/usr/bin/env python3
"""Where the hooks for PyTorch begin and end iterations. Needs neither torch nor the recorder: ranges are noted down."""
import pathlib
import sys
import threading
import types
import unittest

package = pathlib.Path(__file__).resolve().parents[4] / "profiler" / "pytorch" / "paceline_pytorch"


class Kinds:
    iteration = "iteration"


class Optimizer:
    pass


class Iterations(unittest.TestCase):
    def setUp(self):
        self.events = []
        ranges = types.ModuleType("paceline_pytorch.ranges")
        ranges.kinds = Kinds()
        ranges.push_number = lambda kind, number: self.events.append(number)
        ranges.pop = lambda: self.events.append("end")
        parent = types.ModuleType("paceline_pytorch")
        parent.__path__ = [str(package)]
        description = types.ModuleType("paceline_pytorch.description")
        description.description = types.SimpleNamespace(is_marked=True)
        parent.ranges, parent.description = ranges, description
        for name in [name for name in sys.modules if name.startswith("paceline_pytorch")]:
            del sys.modules[name]
        sys.modules.update({"paceline_pytorch": parent, "paceline_pytorch.ranges": ranges,
                            "paceline_pytorch.description": description})
        from paceline_pytorch.iterations import iterations

        self.iterations = iterations
        self.optimizer, self.other = Optimizer(), Optimizer()

    def made(self, *optimizers):
        for optimizer in optimizers:
            self.iterations.optimizers.add(optimizer)

    def step(self, optimizer=None):
        self.iterations.before_step(optimizer or self.optimizer)
        self.iterations.after_step(optimizer or self.optimizer)

    def test_an_iteration_begins_with_the_first_work_after_a_step(self):
        self.made(self.optimizer)
        for _ in range(2):
            self.iterations.work(new_batch=True)
            self.iterations.work()
            self.step()
        self.assertEqual(self.events, [0, "end", 1])

    def test_batches_before_one_step_are_one_iteration(self):
        self.made(self.optimizer)
        for _ in range(2):
            for _ in range(3):
                self.iterations.work(new_batch=True)
                self.iterations.work()
            self.step()
        self.assertEqual(self.events, [0, "end", 1])

    def test_two_optimizers_that_step_in_turn_share_an_iteration(self):
        self.made(self.optimizer, self.other)
        for _ in range(3):
            for optimizer in (self.optimizer, self.other):
                self.iterations.work()
                self.step(optimizer)
        self.assertEqual(self.events, [0, "end", 1, "end", 2])

    def test_the_next_batch_ends_an_iteration_in_which_one_of_two_optimizers_stepped(self):
        self.made(self.optimizer, self.other)
        for batch in range(4):
            self.iterations.work(new_batch=True)
            self.step()
            if batch % 2:
                self.iterations.work()
                self.step(self.other)
        self.assertEqual(self.events, [0, "end", 1, "end", 2, "end", 3])

    def test_an_optimizer_that_is_never_used_does_not_join_iterations(self):
        self.made(self.optimizer, self.other)
        for _ in range(4):
            self.iterations.work()
            self.step()
        # The first one ends when its optimizer steps again; from then on the forward decides.
        self.assertEqual(self.events, [0, "end", 1, "end", 2, "end", 3])

    def test_an_evaluation_ends_an_iteration_that_has_stepped(self):
        self.made(self.optimizer)
        self.iterations.work()
        self.iterations.interlude()
        self.assertEqual(self.events, [0])
        self.step()
        self.iterations.interlude()
        self.iterations.interlude()
        self.assertEqual(self.events, [0, "end"])
        self.iterations.work()
        self.assertEqual(self.events, [0, "end", 1])

    def test_iterations_do_not_change_inside_a_range_of_the_hooks(self):
        self.made(self.optimizer)
        self.iterations.work()
        self.step()
        self.iterations.depth = 1
        self.iterations.work(new_batch=True)
        self.iterations.interlude()
        self.assertEqual(self.events, [0])
        self.iterations.depth = 0
        self.iterations.work()
        self.assertEqual(self.events, [0, "end", 1])

    def test_other_threads_have_no_iterations(self):
        self.made(self.optimizer)
        self.iterations.work()
        self.step()
        thread = threading.Thread(target=lambda: (self.iterations.work(new_batch=True), self.step(),
                                                  self.iterations.interlude()))
        thread.start()
        thread.join()
        self.assertEqual(self.events, [0])

    def test_at_the_exit_only_an_iteration_that_has_stepped_is_finished(self):
        self.made(self.optimizer)
        self.iterations.work()
        self.iterations.at_exit()
        self.assertEqual(self.events, [0])
        self.step()
        self.iterations.at_exit()
        self.assertEqual(self.events, [0, "end"])

    def test_a_forked_child_counts_its_own_iterations(self):
        self.made(self.optimizer)
        self.iterations.work()
        self.iterations.reset()
        self.iterations.work()
        self.assertEqual(self.events, [0, 0])


if __name__ == "__main__":
    unittest.main()
