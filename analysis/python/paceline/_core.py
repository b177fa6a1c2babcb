# SPDX-License-Identifier: Apache-2.0
"""The functions of libpaceline-python.so (analysis/python/interface.cpp)."""
from __future__ import annotations

import ctypes
import os
import pathlib
import weakref
from ctypes import c_char_p, c_int64, c_size_t, c_void_p

_path = str(pathlib.Path(__file__).parent / "lib/paceline/libpaceline-python.so")
_library = ctypes.CDLL(_path)  # other threads of Python run while a function works
_locked = ctypes.PyDLL(_path)  # they do not, because these functions make Python's objects


def _function(library, name, result, *arguments):
    function = library["paceline_" + name]  # [] and not an attribute: each time an object of its own
    function.restype, function.argtypes = result, arguments
    return function


_error = _function(_library, "error", c_char_p)
_load = _function(_library, "load", c_void_p, c_char_p, c_char_p, c_char_p)
_run_ranks = _function(_library, "run_ranks", c_size_t, c_void_p)
_run_span_ns = _function(_library, "run_span_ns", c_int64, c_void_p)
_run_note = _function(_library, "run_note", c_char_p, c_void_p, c_size_t)
_free_run = _function(_library, "free_run", None, c_void_p)
_report = _function(_library, "report", c_void_p, ctypes.POINTER(c_void_p), c_size_t)
_report_text = _function(_library, "report_text", c_char_p, c_void_p, c_size_t)
_free_report = _function(_library, "free_report", None, c_void_p)
_table = _function(_library, "table", c_void_p, c_void_p, c_char_p)
_query = _function(_library, "query", c_void_p, c_void_p, c_char_p)
_table_rows = _function(_library, "table_rows", c_int64, c_void_p)
_table_column = _function(_library, "table_column", c_char_p, c_void_p, c_size_t)
_free_table = _function(_library, "free_table", None, c_void_p)
_table_stream = _function(_locked, "table_stream", ctypes.py_object, c_void_p)
_table_schema = _function(_locked, "table_schema", ctypes.py_object, c_void_p)

__version__: str = _function(_library, "version", c_char_p)().decode()


class Error(Exception):
    """A run cannot be read, or a query is wrong. The message names the file or the place, and the remedy."""


def _bytes(text: str | bytes) -> bytes:
    encoded = text.encode() if isinstance(text, str) else text
    if b"\0" in encoded:
        raise ValueError("embedded null character")
    return encoded


def _texts(function, owner) -> list[str]:
    """The texts that the function returns for the indices from 0 on."""
    texts: list[str] = []
    while (text := function(owner, len(texts))) is not None:
        texts.append(text.decode(errors="replace"))
    return texts


class _Owner:
    """Something of the library, which is freed with this object."""

    def __init__(self, pointer, free):
        if not pointer:
            message = _error()
            raise KeyboardInterrupt if message is None else Error(message.decode())
        self._as_parameter_ = c_void_p(pointer)
        weakref.finalize(self, free, pointer).atexit = False


class Table(_Owner):
    def __init__(self, pointer):
        super().__init__(pointer, _free_table)

    def __arrow_c_stream__(self, requested_schema=None):
        return _table_stream(self)

    def __arrow_c_schema__(self):
        return _table_schema(self)

    def __len__(self) -> int:
        return _table_rows(self)

    @property
    def columns(self) -> list[str]:
        return _texts(_table_column, self)


class LoadedRun(_Owner):
    def __init__(self, path: str | bytes, iterations: str, processes: str):
        super().__init__(_load(_bytes(os.fsencode(path)), _bytes(iterations), _bytes(processes)), _free_run)
        self.path = os.fsdecode(path)
        self.notes = _texts(_run_note, self)
        self.ranks: int = _run_ranks(self)
        self.span_ns: int = _run_span_ns(self)

    def table(self, name: str) -> Table:
        return Table(_table(self, _bytes(name)))

    def query(self, sql: str) -> Table:
        return Table(_query(self, _bytes(sql)))


def report(runs: list[LoadedRun]) -> dict[str, str]:
    pointers = (c_void_p * len(runs))(*(run._as_parameter_ for run in runs))
    made = _Owner(_report(pointers, len(runs)), _free_report)
    return dict(zip(("json", "text", "markdown", "csv", "html"), _texts(_report_text, made)))
