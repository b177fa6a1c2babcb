"""Where an iteration begins and ends.

An iteration has one step of each optimizer. It begins with the first work for training after the step of the iteration
before (the next batch of a DataLoader, or a forward), so that what a script does after the step, such as reading the
loss, belongs to the step's iteration. An evaluation or a checkpoint after the step ends it too.

- Gradient accumulation: several batches, forwards and backwards before one step are one iteration.
- Several optimizers: while batches come from a DataLoader, the next batch decides. Otherwise an iteration ends when all
  optimizers that are in use have stepped. If one steps twice before that, the others are not used in each iteration.

Only the thread that does the first work for training has iterations. They are never begun or ended inside another
range of the hooks, because ranges of a thread nest.
"""
import os
import weakref
from _thread import get_ident

from . import description, ranges

kinds, push_number, pop = ranges.kinds, ranges.push_number, ranges.pop


class Iterations:
    def __init__(self):
        self.optimizers = weakref.WeakSet()  # all that were made
        self.reset()

    def reset(self):
        """At the start of a process, forked children included."""
        self.thread = 0
        self.depth = 0  # open ranges of the hooks on that thread, without the iteration
        self.number = 0  # of the next iteration
        self.is_open = False
        self.stepped = set()  # ids of the optimizers that stepped in this iteration
        self.expected = None  # ids of those that step in each; None: not known yet
        self.in_step = False  # of an optimizer: a step that it calls is a part of it
        self.evaluating = False  # the last call was Module.eval(), not a forward for training

    def here(self):
        """True on the thread that has the iterations, outside the ranges of the hooks."""
        return self.depth == 0 and self.thread == get_ident()

    def enter(self, thread):
        """A range of the hooks begins. Returns what its end subtracts from `depth`."""
        counts = self.thread == thread
        self.depth += counts
        return counts

    def _begin(self):
        push_number(kinds.iteration, self.number)
        self.number += 1
        self.is_open = True
        self.stepped.clear()

    def _end(self):
        pop()
        self.is_open = False

    def work(self, new_batch=False):
        """Work for training begins: a batch is fetched, or a forward or backward begins."""
        if self.depth != 0:
            return
        if self.thread != get_ident():
            if self.thread != 0:
                return
            self.thread = get_ident()
        if not self.is_open:
            self._begin()
        elif self.stepped and (new_batch or self._all_stepped()):
            self._end()
            self._begin()

    def _all_stepped(self):
        if self.expected is not None and self.stepped >= self.expected:
            return True
        known = {id(optimizer) for optimizer in self.optimizers}
        if not self.stepped & known:  # what stepped is gone: another training begins
            return True
        expected = known if self.expected is None else self.expected & known
        if self.stepped >= expected:
            self.expected = expected
            return True
        return False

    def interlude(self):
        """An evaluation or a checkpoint begins, or a DataLoader has no more batches."""
        if self.is_open and self.stepped and self.here():
            self._end()

    def before_step(self, optimizer):
        self.work()
        if self.is_open and id(optimizer) in self.stepped and self.here():
            self.expected = set(self.stepped)
            self._end()
            self._begin()

    def after_step(self, optimizer):
        if not self.is_open or self.thread != get_ident():
            return
        self.stepped.add(id(optimizer))
        if self.expected is not None:
            self.expected.add(id(optimizer))
        if not description.description.is_marked:
            description.mark_run(optimizer, len(self.optimizers))

    def at_exit(self):
        # An iteration without a step was not finished, and stays open.
        self.interlude()


iterations = Iterations()
os.register_at_fork(after_in_child=iterations.reset)
