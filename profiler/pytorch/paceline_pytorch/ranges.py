"""The recorder's functions for ranges (profiler/inject/sources/nvtx/script_ranges.h), through ctypes.

The functions keep the interpreter's lock, because they return at once. They do nothing before attach() and in a process
that is not recorded.
"""
import ctypes
import os

_kind, _word, _signed = ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64
_function = ctypes.PYFUNCTYPE


class _Table(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("open", _function(ctypes.c_int)),
        ("kind", _function(_kind, ctypes.c_char_p, ctypes.c_char_p)),
        ("push", _function(None, _kind)),
        ("push_number", _function(None, _kind, _signed)),
        ("pop", _function(None)),
        ("mark", _function(None, _kind)),
        ("mark_value", _function(None, _kind, ctypes.c_double)),
        ("push_collective", _function(None, _kind, _kind, _word, _word, _word)),
        ("start_collective", _function(_word, _kind, _kind, _word, _word, _word, _word)),
        ("start_message", _function(_word, _kind, _kind, _word, _signed, _signed, _word)),
        ("end", _function(None, _word)),
        ("push_wait", _function(None, _kind, _word, _word)),
        ("say", _function(None, ctypes.c_char_p)),
        ("set_slot", _function(None, _word, _kind)),
        ("push_slot", _function(None) * 16),
    ]


def _find_table():
    name = "paceline_script_ranges_v1"
    try:
        table = _Table.in_dll(ctypes.CDLL(None), name)  # preloaded
    except ValueError:
        table = _Table.in_dll(ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"]), name)
    if table.size < ctypes.sizeof(_Table):
        raise RuntimeError("the recorder in this process is of another version")
    return table


_table = _find_table()
push, push_number, pop = _table.push, _table.push_number, _table.pop
mark_value = _table.mark_value
push_collective, start_collective = _table.push_collective, _table.start_collective
start_message, end, push_wait = _table.start_message, _table.end, _table.push_wait


def kind(name, category=""):
    """The number of ranges with this name and category. Needs attach()."""
    return _table.kind(name.encode("utf-8", "replace"), category.encode())


def mark(name, category):
    _table.mark(kind(name, category))


def say(text):
    _table.say(text.encode("utf-8", "replace"))


def _not_attached():
    pass


class Kinds:
    """The ranges of the hooks. `iteration` and `wait` are kinds; the others are functions that begin a range, which
    cost less. They exist from the first event on; `ready` is True once they do."""

    ready = False
    refused = False
    iteration = wait = 0
    preprocess = fetch = collate = forward = recompute = backward = optimizer = zero_grad = _not_attached
    evaluate = checkpoint = copy = startup = _not_attached


kinds = Kinds()
_slots = (
    ("preprocess", "preprocess"), ("fetch", "preprocess"), ("collate", "preprocess"), ("forward", "forward"),
    ("recompute", "backward"), ("backward", "backward"), ("optimizer", "optimizer"), ("zero_grad", "optimizer"),
    ("evaluate", "evaluate"), ("checkpoint", "checkpoint"), ("copy", "copy"), ("startup", "startup"),
)  # fmt: skip


def attach():
    """Opens the trace file of this process at its first event. Returns False if the process is not recorded."""
    if kinds.refused:
        return False
    if not _table.open():
        kinds.refused = True
        return False
    kinds.iteration, kinds.wait = kind("iteration", "iteration"), kind("wait", "wait")
    for slot, (name, category) in enumerate(_slots):
        _table.set_slot(slot, kind(name, category))
        setattr(kinds, name, _table.push_slot[slot])
    kinds.ready = True
    return True


def _in_forked_child():
    kinds.refused = False  # kinds stay valid: the recorder repeats names in the child's file


os.register_at_fork(after_in_child=_in_forked_child)
