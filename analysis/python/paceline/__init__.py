# SPDX-License-Identifier: Apache-2.0
"""Paceline: performance analysis of data-parallel training jobs.

    import paceline
    run = paceline.load("run4")
    run.report()                      # shown as a page in a notebook
    run.slices.to_polars()            # or to_pandas(), to_arrow(), or any reader of Arrow's C data interface
    paceline.query(run, "SELECT rank, sum(wait_ns) FROM collectives GROUP BY rank")

A training script marks its steps and phases, which costs nothing where it is not recorded:

    with paceline.step(), paceline.phase("forward"):
        model(batch)

Times are integers in nanoseconds since the run's zero, which is the earliest start of a process, on one clock for all
ranks. Sizes are in bytes.
"""
from __future__ import annotations

import html as _html
import json as _json
import os as _os
from types import SimpleNamespace as _SimpleNamespace
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._script import active, phase, step

if _TYPE_CHECKING:
    from ._core import Error, __version__
    from ._recorder import Recorder

__all__ = ["Error", "Recorder", "Report", "Run", "Table", "__version__", "active", "load", "phase", "query", "report", "step"]


def __getattr__(name):
    # A script that only marks its steps does not load the library that reads traces.
    if name in ("Error", "__version__"):
        from . import _core

        return getattr(_core, name)
    if name == "Recorder":
        from ._recorder import Recorder

        return Recorder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Table:
    """A table in memory. pandas, Polars, DuckDB and pyarrow read it through Arrow's C data interface."""

    def __init__(self, core):
        self._core = core

    def __arrow_c_stream__(self, requested_schema=None):
        return self._core.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self):
        return self._core.__arrow_c_schema__()

    def __len__(self):
        return len(self._core)

    @property
    def columns(self) -> list[str]:
        """The names of the columns. Names that end in `_ns` are times in nanoseconds."""
        return self._core.columns

    def to_arrow(self):
        """The table as a pyarrow.Table. Columns of integers are those of the run: nothing is copied."""
        import pyarrow  # type: ignore[import-untyped]

        return pyarrow.table(self)

    def to_pandas(self):
        """The table as a pandas.DataFrame (needs pyarrow). Texts of slices are categoricals."""
        return self.to_arrow().to_pandas(split_blocks=True)

    def to_polars(self):
        """The table as a polars.DataFrame."""
        import polars

        return polars.DataFrame(self)

    def __repr__(self):
        return f"<paceline.Table of {len(self)} rows: {', '.join(self.columns)}>"


class Report:
    """The report of one or several runs, as `paceline report` prints it.

    The keys of the JSON document are attributes: `report.runs[0].iterations.median_ns`, `report.findings[0].text`.
    Figures that do not apply are absent. docs/metrics.md defines them, with their units.
    """

    def __init__(self, texts):
        self._texts = texts
        #: The JSON document (schema paceline.report/1) as a dict.
        self.data = _json.loads(texts["json"])

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        objects = _json.loads(self._texts["json"], object_hook=lambda entry: _SimpleNamespace(**entry))
        self.__dict__.update(objects.__dict__)
        if name not in self.__dict__:
            raise AttributeError(f"the report has no {name}; there are {', '.join(sorted(objects.__dict__))}")
        return self.__dict__[name]

    @property
    def text(self) -> str:
        """The report for a terminal."""
        return self._texts["text"]

    @property
    def markdown(self) -> str:
        """The report as Markdown."""
        return self._texts["markdown"]

    @property
    def csv(self) -> str:
        """One row for each run and rank, as CSV."""
        return self._texts["csv"]

    @property
    def html(self) -> str:
        """The report as a page that loads nothing from elsewhere."""
        return self._texts["html"]

    def __str__(self):
        return self.text

    def __repr__(self):
        return f"<paceline.Report: {self.data.get('headline', '')}>"

    def _repr_html_(self):
        # A frame keeps the styles of the page and those of the notebook apart.
        return (f'<iframe srcdoc="{_html.escape(self.html)}" width="100%" height="640" style="border:0"></iframe>')


class Run:
    """A loaded run. Each table is computed when it is first asked for."""

    def __init__(self, core):
        self._core = core
        self._tables = {}

    def _table(self, name):
        if name not in self._tables:
            self._tables[name] = Table(self._core.table(name))
        return self._tables[name]

    @property
    def path(self) -> str:
        """The path that was loaded."""
        return self._core.path

    @property
    def notes(self) -> list[str]:
        """What was left out while loading, one line each."""
        return self._core.notes

    @property
    def span_ns(self) -> int:
        """Time from the run's zero to the end of the last rank, in ns."""
        return self._core.span_ns

    @property
    def slices(self) -> Table:
        """Ranges, MPI, CUDA and NCCL calls, kernels and copies: id, rank, track, name, category, domain, start_ns,
        duration_ns, depth (0 is the outermost), kind. Ids and numbers are those of `paceline query`."""
        return self._table("slices")

    @property
    def marks(self) -> Table:
        """Moments on the tracks, such as NVTX marks: id, rank, track, time_ns, kind, name, domain, category."""
        return self._table("marks")

    @property
    def collectives(self) -> Table:
        """One row for each call of each rank: operation, communicator, bytes, start_ns, end_ns, wait_ns (time blocked
        before the last rank came), transfer_ns (from the last start to the last end), last_rank, …"""
        return self._table("collectives")

    @property
    def messages(self) -> Table:
        """Point-to-point messages: sender, receiver, tag, bytes, times of both sides in ns, late_sender_ns."""
        return self._table("messages")

    @property
    def iterations(self) -> Table:
        """The training steps of each rank: rank, number, start_ns, end_ns, duration_ns, finished, and the time in each
        phase in ns."""
        return self._table("iterations")

    @property
    def phases(self) -> Table:
        """The time of each rank in each phase, in ns. The phases of a rank add up to its recorded time."""
        return self._table("phases")

    @property
    def ranks(self) -> Table:
        """The processes of the run: rank, host, pid, command, start_ns, end_ns, lost_events, clock_error_ns, …"""
        return self._table("ranks")

    @property
    def tracks(self) -> Table:
        """Threads, GPU streams, NCCL communicators and counters of the ranks."""
        return self._table("tracks")

    @property
    def counters(self) -> Table:
        """Samples of CPU, memory, network and GPU counters over time."""
        return self._table("counters")

    def query(self, sql: str) -> Table:
        """The result of one SELECT statement; see `paceline.query`."""
        return query(self, sql)

    def report(self) -> Report:
        """The report of this run, as `paceline report` prints it."""
        return report(self)

    def __repr__(self):
        return f"<paceline.Run {self.path}: {self._core.ranks} ranks, {self.span_ns * 1e-9:.3f} s>"


def load(path: str | _os.PathLike, *, iterations: str = "", processes: str = "auto") -> Run:
    """Loads a run: a directory of traces, a trace, an archive or a pattern, in any format that `paceline info` reads.

    `iterations` is the pattern of the names of the ranges that are iterations; the default is the built-in rules.
    `processes` says what the processes in one Chrome JSON or Perfetto file are, as `--processes` of the command line:
    "auto", "ranks" or "one".
    Raises `paceline.Error` with the message of the command line.

    >>> load("no/such/run")
    Traceback (most recent call last):
    paceline._core.Error: no/such/run: no such file or directory
    """
    from . import _core

    return Run(_core.LoadedRun(_os.fspath(path), iterations, processes))


def query(run: Run, sql: str) -> Table:
    """The result of one SELECT statement over the tables of `paceline query --schema` (docs/queries.md).

    Times are in ns. A column with integers and real numbers is real, and one with numbers and texts is text. Raises
    `paceline.Error` with the line and column of a mistake.
    """
    return Table(run._core.query(sql))


def report(*runs: Run) -> Report:
    """The report of one run, or of several runs with the scaling between them."""
    from . import _core

    return Report(_core.report([run._core for run in runs]))
