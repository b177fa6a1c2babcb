# SPDX-License-Identifier: Apache-2.0
"""The mark `run`, which describes the job to reports: model, batch, ranks, data type, communicator and versions.

It is made after the first step, when all of this is known, and without an optimizer when a loader has no more batches.
"""
import json
import os

from . import ranges


class Description:
    def __init__(self):
        self.reset()

    def reset(self):
        self.is_marked = False
        self.facts = {}
        self.batches = 1  # whose gradients the first step uses


description = Description()
os.register_at_fork(after_in_child=description.reset)


def careful(describe):
    """A program with unusual modules goes on without a description."""

    def wrapper(*args):
        try:
            describe(*args)
        except Exception:
            pass

    return wrapper


@careful
def saw_forward(module, args, kwargs):
    """The first forward for training."""
    facts = description.facts
    for value in (*args, *kwargs.values()):
        shape = getattr(value, "shape", None)
        if shape is not None and len(shape) > 0 and hasattr(value, "dtype"):
            facts["batch_per_rank"] = int(shape[0])
            break
    inner = getattr(module, "module", module)  # of DistributedDataParallel
    inner = getattr(inner, "_orig_mod", inner)  # of torch.compile
    facts["model"] = type(inner).__name__
    parameters = list(module.parameters())
    if parameters:
        facts["dtype"] = str(parameters[0].dtype).replace("torch.", "")
        facts["device"] = parameters[0].device.type
        facts["parameters"] = sum(parameter.numel() for parameter in parameters)


def count_batches(optimizers):
    """Called before the first step. A script may have fetched batches that it does not use yet, and may call backward()
    several times for a batch. Backwards in a closure of the step are not counted: they repeat one batch."""
    batches, backwards = ranges.count_batches(), ranges.count_backwards()
    if batches > 0:
        backwards = min(batches, backwards)
    elif optimizers > 1:
        backwards = 1
    description.batches = max(backwards, 1)


def mark_run_without_optimizer():
    if not description.is_marked and description.facts and ranges.count_backwards() > 0:
        mark_run(None)


@careful
def mark_run(optimizer):
    import torch

    description.is_marked = True
    run = dict(description.facts, program="pytorch", torch=str(torch.__version__))
    if optimizer is not None:
        run["optimizer"] = type(optimizer).__name__
    run["ranks"] = 1
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        run["ranks"] = distributed.get_world_size()
        run["communicator"] = str(distributed.get_backend())
    if description.batches > 1:
        run["accumulate"] = description.batches
    if "batch_per_rank" in run:
        images = run["batch_per_rank"] * run["ranks"] * description.batches
        run["global_batch"] = run["images_per_iteration"] = images
    ranges.mark(json.dumps(run), "run")
