# SPDX-License-Identifier: Apache-2.0
"""Ends a range when a future is complete.

A thread of C++ calls back, and needs Python's lock for it, twice: to call, and to release what it called. Where the interpreter
is about to end by then, Python ends that thread, and C++ answers with std::terminate: the program would abort. So the
interpreter waits at its end until the callbacks are gone, and for a moment longer: the thread then releases what others
registered with the same future, such as DDP's hooks, later than it would have without ours.
"""
import atexit
import os
import time

from . import ranges

_MOMENT_S = 0.02  # hooks that took 10 ms to be released needed less
_LONGEST_WAIT_S = 5  # for a collective that a rank never joins; without the recorder its group waits for it, too

_pending = set()  # numbers of ranges
_process = 0


class _End:
    __slots__ = ("running",)

    def __init__(self, running):
        self.running = running

    def __call__(self, future):
        ranges.end(self.running)

    def __del__(self, discard=_pending.discard):  # modules may be gone by then
        discard(self.running)


def end_with(future, running):
    """Ends the range `running` when `future` is complete. Cost: 1 µs."""
    global _process
    _process = os.getpid()
    callback = _End(running)
    _pending.add(running)
    future.add_done_callback(callback)


@atexit.register
def _wait():
    if _process != os.getpid():  # a forked child has no such threads
        return
    deadline = time.monotonic() + _LONGEST_WAIT_S
    while _pending and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(_MOMENT_S)
