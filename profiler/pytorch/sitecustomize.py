# SPDX-License-Identifier: Apache-2.0
"""Runs when a Python interpreter of a recorded job starts, because `paceline record --pytorch` puts this folder on
PYTHONPATH. It installs the import hook, takes the folder off sys.path, and runs the sitecustomize that would have run.
"""
import os
import sys


def _folder_off_the_path():
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != folder]


def _install_hook():
    try:
        from paceline_pytorch import imports
    finally:
        _folder_off_the_path()
    imports.install()


def _run_next_sitecustomize():
    import importlib.machinery
    import importlib.util

    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if sys.version_info >= (3, 7):
    try:
        _install_hook()
    except Exception as error:  # the recorder never ends a program
        sys.stderr.write("paceline: PyTorch is not recorded: %s: %s\n" % (type(error).__name__, error))
    _run_next_sitecustomize()
