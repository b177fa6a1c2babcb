# SPDX-License-Identifier: Apache-2.0
"""The recorder's functions for ranges (profiler/inject/sources/script/table.h).

The hooks of a step call `phases`, which are built-in functions of Python, because a call through ctypes takes three times
as long and touches more memory. The other functions are called through ctypes. All of them keep the interpreter's
lock, because they return at once. They do nothing before phases.attach() and in a process that is not recorded.
"""
import ctypes
import os
import types

_kind, _word, _signed = ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64
_function = ctypes.PYFUNCTYPE


class _PythonFunction(ctypes.Structure):
    """PyMethodDef"""

    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("text", ctypes.c_char_p)]


class _Python(ctypes.Structure):
    _fields_ = [("truth", ctypes.py_object), ("add_reference", ctypes.c_void_p), ("call", ctypes.c_void_p), ("item", ctypes.c_void_p)]


class _Table(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("kind", _function(_kind, ctypes.c_char_p, ctypes.c_char_p)),
        ("push", _function(None, _kind)),
        ("pop", _function(None)),
        ("mark", _function(None, _kind)),
        ("mark_value", _function(None, _kind, ctypes.c_double)),
        ("push_collective", _function(None, _kind, _kind, _word, _word, _word)),
        ("start_collective", _function(_word, _kind, _kind, _word, _word, _word, _word)),
        ("start_message", _function(_word, _kind, _kind, _word, _signed, _signed, _word)),
        ("end", _function(None, _word)),
        ("push_wait", _function(None, _word, _word)),
        ("say", _function(None, ctypes.c_char_p)),
        ("for_python", _function(ctypes.POINTER(_PythonFunction), ctypes.POINTER(_Python))),
        ("count_backwards", _function(_word)),
        ("count_batches", _function(_word)),
        ("note_rank", _function(None, ctypes.c_int32, ctypes.c_int32)),
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


def _definitions():
    """The definitions of the functions for Python, by name."""
    python = ctypes.pythonapi
    functions = (ctypes.cast(function, ctypes.c_void_p) for function in (python.Py_IncRef, python.PyObject_Call, python.PyTuple_GetItem))
    definition = _table.for_python(ctypes.byref(_Python(True, *functions)))
    by_name = {}
    while definition.contents.name:
        by_name[definition.contents.name.decode()] = definition
        address = ctypes.addressof(definition.contents) + ctypes.sizeof(_PythonFunction)
        definition = ctypes.pointer(_PythonFunction.from_address(address))
    return by_name


_table = _find_table()
_defined = _definitions()
_make = _function(ctypes.py_object, ctypes.POINTER(_PythonFunction), ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)
_as_method = _function(ctypes.py_object, ctypes.py_object)(("PyInstanceMethod_New", ctypes.pythonapi))
phases = types.SimpleNamespace(**{
    name: _make(_defined[name], None, None) for name in _defined if not name.startswith(("around_", "before_"))
})  # fmt: skip
push, pop, mark_value = _table.push, _table.pop, _table.mark_value
push_collective, start_collective = _table.push_collective, _table.start_collective
start_message, end, push_wait = _table.start_message, _table.end, _table.push_wait
count_backwards, count_batches, note_rank = _table.count_backwards, _table.count_batches, _table.note_rank


def hook(name, original):
    """The function of this name that calls the original (profiler/inject/sources/script/python_functions.cpp)."""
    return _make(_defined[name], original, None)


def hook_of_method(name, original):
    """The same for a method of a class."""
    return _as_method(hook(name, original))


def kind(name, category=""):
    """The number of ranges with this name and category. Needs attach()."""
    return _table.kind(name.encode("utf-8", "replace"), category.encode())


def mark(name, category):
    _table.mark(kind(name, category))


def say(text):
    _table.say(text.encode("utf-8", "replace"))
