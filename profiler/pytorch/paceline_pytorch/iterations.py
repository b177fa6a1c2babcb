# SPDX-License-Identifier: Apache-2.0
"""Which steps of optimizers end an iteration (profiler/inject/sources/script/phases.h has the rest).

- Gradient accumulation: several batches, forwards and backwards before one step are one iteration.
- Several optimizers: while batches come from a DataLoader, the next batch decides. Otherwise an iteration ends when all
  optimizers that are in use have stepped. If one steps twice before that, the others are not used in each iteration.
- No optimizer: the next batch that comes from a DataLoader after a backward begins an iteration.
"""
import os
import threading
import weakref

from . import description, ranges

phases = ranges.phases


class ThreadEnd:
    """Ends the last iteration when the thread ends that keeps this: one that trains may leave its loop before the last batch, and
    the process may be killed before it exits."""

    def __del__(self):
        phases.begin_interlude()


kept_by_thread = threading.local()


class Iterations:
    def __init__(self):
        self.optimizers = weakref.WeakValueDictionary()  # all that were made, by id; the sets below have ids too
        self.reset()

    def reset(self):
        """At the start of a process, forked children included."""
        phases.reset()
        if self.optimizers:
            phases.note_optimizer()
        self.stepped = set()  # in the latest iteration that has a step
        self.missing = set()  # those whose step it needs before it ends
        self.expected = None  # those that step in each iteration; None: not known yet
        self.next_expected = None  # from the next iteration on

    def made(self, optimizer):
        self.optimizers[id(optimizer)] = optimizer
        if threading.current_thread() is not threading.main_thread():
            kept_by_thread.end = ThreadEnd()
        phases.note_optimizer()
        phases.set_only_optimizer(None)
        if phases.has_stepped():
            if self.expected is None:
                self.missing.add(id(optimizer))
            self._decide()

    def _start(self, expected):
        """The first step of an iteration follows."""
        if expected is not None:
            expected = {number for number in expected if number in self.optimizers}
        self.expected = self.next_expected = expected
        self.missing = set(self.optimizers if expected is None else expected)
        self.stepped.clear()

    def before_step(self, optimizer):
        phases.begin_work()
        if not description.description.is_marked:
            description.count_batches(len(self.optimizers))
        if not phases.has_stepped():
            self._start(self.next_expected)
        elif id(optimizer) in self.stepped and phases.is_outside():
            self._start(set(self.stepped))
            phases.begin_next_iteration()

    def after_step(self, optimizer):
        number = id(optimizer)
        self.stepped.add(number)
        self.missing.discard(number)
        if self.expected is not None:
            self.expected.add(number)
        self._decide()
        if self.expected == {number} and len(self.optimizers) == 1 and number in self.optimizers:
            phases.set_only_optimizer(optimizer)
        if not description.description.is_marked:
            description.mark_run(optimizer)

    def _decide(self):
        """Decides whether the next work begins an iteration."""
        exists = self.optimizers.__contains__
        finished = not any(map(exists, self.missing))
        if finished and self.expected is None:
            self.next_expected = set(self.optimizers)
        # If all that stepped are gone, another training begins.
        phases.set_finished(finished or not any(map(exists, self.stepped)))


iterations = Iterations()
os.register_at_fork(after_in_child=iterations.reset)
