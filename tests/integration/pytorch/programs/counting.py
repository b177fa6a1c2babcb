# SPDX-License-Identifier: Apache-2.0
"""Counts the collectives and messages of this process where torch's dispatcher passes them to the backend.

Python, the reducer of DistributedDataParallel, DTensor and compiled graphs all meet there, below everything that Paceline
hooks. At its end the process writes what it counted as lines of JSON to FOLDER/counted.PROCESS: operation, group, bytes, number.
"""
import atexit
import collections
import json
import os

import torch
import torch.distributed as dist
from torch.utils import _pytree

# Operation of the dispatcher: its name in the trace, and the argument that has all ranks' parts together.
OPERATIONS = {
    "allreduce_": ("all_reduce", 0), "allreduce_coalesced_": ("all_reduce", 0), "broadcast_": ("broadcast", 0),
    "reduce_": ("reduce", 0), "allgather_": ("all_gather", 0), "_allgather_base_": ("all_gather", 0),
    "allgather_coalesced_": ("all_gather", 0), "allgather_into_tensor_coalesced_": ("all_gather", 0),
    "reduce_scatter_": ("reduce_scatter", 1), "_reduce_scatter_base_": ("reduce_scatter", 1),
    "reduce_scatter_tensor_coalesced_": ("reduce_scatter", 1), "alltoall_": ("all_to_all", 1),
    "alltoall_base_": ("all_to_all", 1), "barrier": ("barrier", None), "monitored_barrier_": ("barrier", None),
    "gather_": ("gather", 1), "scatter_": ("scatter", 0), "send": ("send", 0), "recv_": ("recv", 0),
    "recv_any_source_": ("recv_anysource", 0)}  # fmt: skip
ONE_PART = ("gather", "scatter")  # every rank has its own part alone


def count_in(folder):
    """Does nothing where torch cannot tell (before 2.5). Returns what writes the counts, for a process that is killed."""
    if not hasattr(dist.ProcessGroup, "unbox"):
        return lambda: None
    counts = collections.Counter()
    library = torch.library.Library("c10d", "IMPL")
    below = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)

    def count(operation, name, of):
        overload = getattr(torch.ops.c10d, operation).default

        def call(keys, *args, **kwargs):
            group = next(value for value in args if isinstance(value, torch.ScriptObject) and hasattr(value, "_type")
                         and str(value._type()).endswith("ProcessGroup"))
            group = dist.ProcessGroup.unbox(group)
            leaves = [] if of is None else _pytree.tree_leaves(args[of])
            size = sum(part.numel() * part.element_size() for part in leaves) * (group.size() if name in ONE_PART else 1)
            counts[name, group.group_name, size] += 1
            return overload.redispatch(keys & below, *args, **kwargs)

        library.impl(operation, call, "BackendSelect", with_keyset=True)

    for operation, what in OPERATIONS.items():
        if f"c10d::{operation}" in torch._C._dispatch_get_all_op_names():
            count(operation, *what)

    def write():
        rank = os.environ.get("RANK", "0")
        with open(f"{folder}/counted.{os.getpid()}", "w") as file:
            for (name, group, size), number in counts.items():
                file.write(json.dumps([int(rank), name, group, size, number]) + "\n")

    atexit.register(write)
    count_in.library = library  # it ends with this object
    return write
