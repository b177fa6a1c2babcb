# SPDX-License-Identifier: Apache-2.0
"""Python's garbage collector: ranges around the collections that stop the thread for long."""
import gc

from . import ranges


class _Collections:
    """One collection runs at a time, with the interpreter's lock held."""

    kind = 0  # 0 before anything was recorded
    is_open = False

    def note(self, phase, info):
        if phase == "start":
            # The youngest objects are collected often, and each time for some microseconds only.
            if info["generation"] == 0:
                return
            self.kind = self.kind or ranges.kind("garbage collection", "gc")
            self.is_open = self.kind != 0
            if self.is_open:
                ranges.push(self.kind)
        elif self.is_open:
            self.is_open = False
            ranges.pop()


def install(torch):
    gc.callbacks.append(_Collections().note)
