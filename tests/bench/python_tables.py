#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: python_tables.py RUN

How long pandas, Polars and pyarrow take for the slices of a run that the Python package has loaded, and pyarrow to write them as
Parquet: wall time and CPU seconds, the best of five. By hand, with PYTHONPATH=build/release/python or the installed package.
"""
import os
import resource
import sys
import tempfile
import time

import pandas  # imported here, so that the time to import does not count
import polars
import pyarrow.parquet

import paceline


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


run = paceline.load(sys.argv[1])
print(f"{len(run.slices)} slices, pandas {pandas.__version__}, polars {polars.__version__}, pyarrow {pyarrow.__version__}")
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "slices.parquet")
    for name, read in [("pyarrow", run.slices.to_arrow), ("polars", run.slices.to_polars), ("pandas", run.slices.to_pandas),
                       ("parquet", lambda: pyarrow.parquet.write_table(run.slices.to_arrow(), file))]:
        best = (float("inf"), float("inf"))
        for _ in range(5):
            wall, used = time.perf_counter(), cpu()
            table = read()
            best = min(best, (time.perf_counter() - wall, cpu() - used))
            del table
        print(f"{name:8} {best[0]:6.2f} s wall, {best[1]:6.2f} s CPU")
