# SPDX-License-Identifier: Apache-2.0
"""Hooks torch when it has been imported."""
import atexit
import os

from . import collecting, collectives, loading, ranges, training

KNOWN = ((1, 13), (2, 15))  # the oldest and the newest version that were tried


def _version_of(torch):
    try:
        return tuple(int(part) for part in str(torch.__version__).split(".")[:2])
    except ValueError:
        return (0, 0)


def install(torch):
    version = _version_of(torch)
    missing = []

    def attempt(what, function, *args):
        try:
            function(torch, *args)
        except Exception as error:  # a version in which something has moved
            missing.append("%s (%s: %s)" % (what, type(error).__name__, error))

    attempt("forward", training.install_forward, os.environ.get("PACELINE_PYTORCH") == "modules")
    attempt("backward", training.install_backward)
    attempt("optimizers", training.install_optimizers)
    attempt("clipping of gradients", training.install_clipping)
    attempt("checkpoints", training.install_checkpoints)
    attempt("copies to the device", training.install_copies)
    attempt("DataLoader", loading.install)
    attempt("torch.distributed", collectives.install)
    attempt("garbage collection", collecting.install)
    if missing:
        unknown = "" if KNOWN[0] <= version <= KNOWN[1] else ", which is not known to this version of Paceline"
        ranges.say("PyTorch %s%s: not recorded: %s" % (torch.__version__, unknown, "; ".join(missing)))
    atexit.register(ranges.phases.begin_interlude)  # an iteration without a step was not finished, and stays open
