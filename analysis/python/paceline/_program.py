# SPDX-License-Identifier: Apache-2.0
"""The command line of the package."""
import os
import pathlib
import shutil
import sys


def program() -> str:
    """The path of the program `paceline`: the one of this package, else the one of the PATH."""
    own = pathlib.Path(__file__).parent / "bin" / "paceline"
    found = str(own) if own.exists() else shutil.which("paceline")
    if not found:
        raise FileNotFoundError("the program paceline is missing; install the package with pip as a whole")
    return found


def main():
    path = program()
    os.execv(path, [path, *sys.argv[1:]])
