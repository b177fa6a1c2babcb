#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: python_test.py RUN [NOTEBOOK]

The package paceline on a run of two ranks in which rank 1 comes late to each collective: pandas, Polars, DuckDB and pyarrow read its
tables, and the notebook names the late rank. The examples of docs/python.md run, except those that record. Status 77: skipped, because a package is missing.
"""
import doctest
import gc
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading

try:
    import duckdb
    import matplotlib
    import pandas  # noqa: F401
    import polars
    import pyarrow
    import pyarrow.parquet
except ImportError as missing:
    print(f"skipped: {missing}; pip install -r tests/python-requirements.txt")
    sys.exit(77)

import paceline
from paceline._program import program

path = sys.argv[1]
run = paceline.load(path)
assert repr(run).startswith(f"<paceline.Run {path}: 2 ranks, "), repr(run)

# The same slices by every reader.
arrow, frame, polar, slices = run.slices.to_arrow(), run.slices.to_pandas(), run.slices.to_polars(), run.slices
barriers = arrow.filter(pyarrow.compute.equal(pyarrow.compute.cast(arrow["name"], "string"), "MPI_Barrier"))
arrow.validate(full=True)
assert len(run.slices) == len(arrow) == len(frame) == len(polar) > 0
assert len(barriers) == (frame.name == "MPI_Barrier").sum() == polar.filter(polars.col("name") == "MPI_Barrier").height == 20
assert duckdb.sql("SELECT count(*) FROM slices WHERE name = 'MPI_Barrier'").fetchall() == [(20,)]
assert frame.start_ns.sum() == polar["start_ns"].sum() == sum(arrow["start_ns"].to_pylist())
assert set(frame.domain) == {"mpi"} and set(frame["rank"]) == {0, 1}

# Slices and the tables of queries have the same ids, and equal columns have equal types.
asked = paceline.query(run, "SELECT id, rank, track, name, duration_ns FROM slices ORDER BY id").to_polars()
joined = asked.join(polar, on=["id", "rank", "track"])
assert joined.height == polar.height
assert (joined["duration_ns"] == joined["duration_ns_right"]).all()

# Types, missing values, empty tables.
mixed = run.query("SELECT 1 AS i UNION ALL SELECT NULL UNION ALL SELECT 2.5").to_arrow()
assert mixed["i"].to_pylist() == [1, None, 2.5], mixed
assert run.query("SELECT 7 AS v UNION ALL SELECT 'x'").to_arrow()["v"].to_pylist() == ["7", "x"]
assert len(run.messages) == 0 and run.messages.to_arrow().schema.field("communicator").type == pyarrow.large_string()
for name in ("marks", "collectives", "messages", "iterations", "phases", "ranks", "tracks", "counters"):
    table = getattr(run, name)
    assert len(table.to_polars()) == len(table) and table.to_arrow().column_names == table.columns, name
    table.to_arrow().validate(full=True)

# Memory stays as long as a table needs it.
kept = paceline.load(path).slices.to_arrow()
gc.collect()
assert kept.equals(arrow)

# Parquet, written from the same columns.
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "slices.parquet"
    pyarrow.parquet.write_table(arrow, file)
    assert pyarrow.parquet.read_table(file)["start_ns"].to_pylist() == arrow["start_ns"].to_pylist()

# The report, and errors with the texts of the command line.
report = run.report()
assert report.runs[0].ranks == 2 and report.data["schema"] == "paceline.report/1"
assert report._repr_html_().startswith("<iframe srcdoc=") and "MPI_Barrier" in report.text
for wrong, words in ((lambda: paceline.load("no/such/run"), "no/such/run: "),
                     (lambda: paceline.query(run, "SELECT tim FROM slices"), "line 1, column 8: no such column: tim"),
                     (lambda: paceline.query(run, "SELECT x'00' AS b"), "column b: a BLOB")):
    try:
        wrong()
        raise SystemExit("an error was expected")
    except paceline.Error as error:
        assert str(error).startswith(words), error
for wrong in (lambda: paceline.load("a\0b"), lambda: paceline.query(run, "SELECT 1\0")):
    try:
        wrong()
        raise SystemExit("an error was expected")
    except ValueError as error:
        assert str(error) == "embedded null character", error

# The choice of the processes of one file.
with tempfile.TemporaryDirectory() as folder:
    two = pathlib.Path(folder) / "two.json"
    two.write_text(json.dumps([{"ph": "X", "name": "work", "pid": pid, "tid": 1, "ts": 5, "dur": 2} for pid in (40, 41)]))
    assert [paceline.load(two, processes=choice)._core.ranks for choice in ("auto", "ranks", "one")] == [1, 2, 1]
    try:
        paceline.load(two, processes="some")
        raise SystemExit("an error was expected")
    except paceline.Error as error:
        assert str(error).startswith("processes: expected "), error

# Ctrl-C ends a query that would never end.
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    paceline.query(run, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n")
    raise SystemExit("the query ended")
except KeyboardInterrupt:
    pass
assert doctest.testmod(paceline, optionflags=doctest.IGNORE_EXCEPTION_DETAIL).failed == 0

if len(sys.argv) > 2:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(sys.argv[2], as_version=4)
    assert sum(cell.cell_type == "code" for cell in notebook.cells) == 5
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(pathlib.Path(path).parent)}}).execute()
    last = "".join(output.get("text", "") for output in notebook.cells[-1].outputs)
    assert last.startswith("Rank 1 is the slowest"), last
    print(last.strip())

    # A cell of a notebook whose kernel was started by `paceline record` is recorded, and nothing else of the notebook.
    with tempfile.TemporaryDirectory() as folder:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in (
            "import paceline, time\n\ndef outside(end):\n    while time.monotonic() < end: pass\n\noutside(time.monotonic() + 0.1)",
            "def inside(end):\n    while time.monotonic() < end: pass\n\n"
            "with paceline.Recorder() as recorder:\n    inside(time.monotonic() + 0.3)",
            "functions = paceline.load(recorder.output).query('SELECT function FROM frames').to_arrow()['function'].to_pylist()\n"
            "assert 'inside' in functions and 'outside' not in functions, functions")])
        nbformat.write(notebook, f"{folder}/cell.ipynb")
        subprocess.run([program(), "record", "--capture-range", "cudaProfilerApi", "--sample", "200", "-o", "cells", "--", sys.executable, "-c",
                        "import nbclient, nbformat; nbclient.NotebookClient(nbformat.read('cell.ipynb', as_version=4), timeout=120).execute()"],
                       cwd=folder, check=True)

# docs/python.md beside two runs of iterations.
document = (pathlib.Path(__file__).resolve().parents[2] / "docs/python.md").read_text()
with tempfile.TemporaryDirectory() as folder:
    for ranks in 1, 2:
        os.mkdir(f"{folder}/run{ranks}")
        for rank in range(ranks):
            events = [{"ph": "X", "pid": rank, "tid": 1, "ts": 1000 * step, "dur": duration, "name": name}
                      for step in range(20) for name, duration in (("iteration", 990 // ranks), ("forward", 500 // ranks))]
            pathlib.Path(f"{folder}/run{ranks}/rank-{rank}.json").write_text(json.dumps({"traceEvents": events}))
    os.chdir(folder)
    matplotlib.use("Agg")
    names = {}
    for example in re.findall(r"^```python\n(.*?)^```", document, flags=re.DOTALL | re.MULTILINE):
        if "paceline.Recorder" not in example:
            exec(example, names)
    assert names["report"].runs[0].ranks == 2 and names["report"].runs[0].iterations.median_ns == 495000
    assert list(names["steps"].columns) == [0, 1] and os.path.getsize("steps.png") > 1000 and os.path.getsize("phases.png") > 1000
    os.chdir("/")
print("all readers agree")
