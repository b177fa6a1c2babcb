# SPDX-License-Identifier: Apache-2.0
"""Recording from within a script, and of other commands."""
from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys

from ._program import program


def _is_recorded():
    return bool(os.environ.get("PACELINE_OUTPUT"))


class Recorder:
    """Records this script between `start()` and `stop()`.

        with paceline.Recorder("run4"):
            train()

    The recorder has to be there when a process starts. So the first Recorder of a script that does not run under
    `paceline record` starts the script again under it: make it at the top of the script. Under `mpirun` or `torchrun` each
    rank does so. A notebook cannot be started again. Its cells can be recorded if Jupyter was started by
    `paceline record --capture-range cudaProfilerApi -- jupyter notebook`; otherwise use `Recorder(…).run(command)`.

    `output` is the directory for the traces, and `options` are options of `paceline record`, such as
    `"--counters", "0"`. What is started by `paceline record` itself is recorded as its options say, also `output`, and
    `start()` and `stop()` only matter with `--capture-range cudaProfilerApi`.
    """

    def __init__(self, output: str | os.PathLike = "paceline-run", *options: str):
        self.output = os.fspath(output)
        self.options = [str(option) for option in options]

    def _command(self, *more):
        return [program(), "record", "-o", self.output, *self.options, *more, "--"]

    def _switch(self, function):
        try:
            switch = getattr(ctypes.CDLL(None), function)
        except AttributeError:
            raise RuntimeError("paceline.Recorder: the recorder is not loaded, because LD_PRELOAD was changed or the "
                               "program is static; start the script with paceline record") from None
        switch()

    def start(self) -> None:
        """Starts recording. The first call starts the script again where it does not run under the recorder."""
        if not _is_recorded():
            if not sys.argv or not sys.argv[0] or "ipykernel" in sys.modules:
                raise RuntimeError("paceline.Recorder: only a script can be recorded from within; use Recorder(…).run(command), "
                                   "or start Jupyter with paceline record --capture-range cudaProfilerApi -- jupyter notebook")
            sys.stdout.flush()
            sys.stderr.flush()
            command = self._command("--capture-range", "cudaProfilerApi")
            words = getattr(sys, "orig_argv", ["python", *sys.argv])  # Python 3.9 does not keep its own options
            os.execv(command[0], [*command, sys.executable, *words[1:]])
        self.output = os.environ["PACELINE_OUTPUT"]
        self._switch("cudaProfilerStart")

    def stop(self) -> None:
        """Stops recording until the next `start()`."""
        self._switch("cudaProfilerStop")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def run(self, command: list[str], **options) -> subprocess.CompletedProcess:
        """Runs a command under `paceline record`; `options` are those of `subprocess.run`.

        Put it after the launcher's words for several ranks: `["mpirun", "-n", "4"]` go into `launcher`.
        """
        launcher = list(options.pop("launcher", []))
        found = shutil.which(launcher[0]) if launcher else None
        if launcher and found is None:
            raise FileNotFoundError(f"paceline.Recorder: the launcher {launcher[0]} is not installed")
        return subprocess.run([*launcher, *self._command(), *command], check=True, **options)
