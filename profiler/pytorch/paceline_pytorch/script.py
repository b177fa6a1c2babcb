# SPDX-License-Identifier: Apache-2.0
"""What a training script marks itself: steps and phases. Without the recorder nothing happens.

This file is a part of the package paceline. Where that is not installed, `paceline record --pytorch` gives this file to
scripts as the module paceline (imports.py). It needs no other file.
"""
import contextlib
import ctypes

__all__ = ["active", "phase", "step"]


def _function(library, name, result, *arguments):
    function = library["paceline_script_%s_v1" % name]
    function.restype, function.argtypes = result, arguments
    return function


try:
    # The recorder is preloaded. Its functions (profiler/inject/sources/script/marks.h) return at once, so they keep
    # the interpreter's lock.
    _library = ctypes.PyDLL(None)
    _active = _function(_library, "active", ctypes.c_int)
    _range = _function(_library, "range", ctypes.c_uint64, ctypes.c_char_p)
    _begin = _function(_library, "begin", None, ctypes.c_uint64)
    _end = _function(_library, "end", None)
    _begin_step = _function(_library, "begin_step", None)
    _end_step = _function(_library, "end_step", None)
    _is_loaded = True
except (AttributeError, OSError):
    _is_loaded = False

_ranges = {}  # numbers by name


def _range_of(name):
    number = _range(str(name).encode("utf-8", "replace"))
    if number:
        _ranges[name] = number
    return number


class _Nothing(contextlib.ContextDecorator):
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class _Phase(_Nothing):
    def __init__(self, name):
        self._name = name

    # Not earlier, because a decorator is made when the script has perhaps not forked its ranks yet.
    def __enter__(self):
        _begin(_ranges.get(self._name) or _range_of(self._name))
        return self

    def __exit__(self, *_):
        _end()


class _Step(_Nothing):
    def __enter__(self):
        _begin_step()
        return self

    def __exit__(self, *_):
        _end_step()


_nothing, _step = _Nothing(), _Step()


def active() -> bool:
    """True while events of this process are recorded."""
    return _is_loaded and bool(_active())


def step() -> contextlib.ContextDecorator:
    """A range that is one iteration (training step), as a context manager or a decorator:

        for batch in loader:
            with paceline.step():
                train(batch)

    From the first step on, `paceline record --pytorch` makes no iterations of its own. A step inside a step is a part of it.
    """
    return _step if _is_loaded else _nothing


def phase(name: str) -> contextlib.ContextDecorator:
    """A range with this name, as a context manager or a decorator. Reports assign a phase to it by its name: startup,
    preprocess, forward, backward, communication, optimizer, evaluate, checkpoint. Ranges with other names belong to the
    phase around them. Each name is kept in the trace, so do not put numbers into names."""
    return _Phase(name) if _is_loaded else _nothing
