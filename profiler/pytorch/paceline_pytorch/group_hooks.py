# SPDX-License-Identifier: Apache-2.0
"""Collectives that are called from C++: functional collectives, DTensor, tensor parallelism, code that torch.compile made.

They pass the methods that collectives.py replaces. From PyTorch 2.15 on a process group tells of every collective before and
after it is issued; for older versions functional_hooks.py sees what Python calls. What a replaced method issues is recorded there, and left out here. Forwards and backwards wait for the
results of functional collectives in wait_tensor(); code of torch.compile waits in C++, which nothing tells of.
"""
import atexit
import itertools
from _thread import get_ident

from . import functional_hooks, ranges
from .training import function_around, hooked, is_compiling_of

_METHODS = {"ALLGATHER_BASE": "_allgather_base", "REDUCE_SCATTER_BASE": "_reduce_scatter_base"}  # others: in lower case
_PARTS = {"gather": "input_tensors", "scatter": "output_tensors"}  # where every rank has its own part alone

_hook_ids = itertools.count(0x70616365)


class GroupHooks:
    """For one process group. The observer is that of collectives.py."""

    def __init__(self, observer, reference, names, bytes_of, device_of):
        self.observer, self.reference = observer, reference
        self.names, self.bytes_of, self.device_of = names, bytes_of, device_of
        self.running = {}  # by number of the operation: its range and request

    def before(self, arguments):
        real = self.reference()
        if real is None or get_ident() in self.observer.issuing or not ranges.phases.attach():
            return
        group, name = self.observer.group_of(real), arguments.name.name
        method = _METHODS.get(name, name.lower())
        tensors = (*arguments.input_tensors, *arguments.output_tensors)
        backend = group.backend(real, self.device_of(tensors))
        if not backend or method not in self.names:
            return
        if method in _PARTS:
            size = self.bytes_of(getattr(arguments, _PARTS[method])) * group.members
        else:
            size = max(self.bytes_of(arguments.input_tensors), self.bytes_of(arguments.output_tensors))
        request = self.observer.new_request()
        running = ranges.start_collective(group.kind(method, backend), group.communicator, size, group.number(),
                                          group.members, request)
        self.running[arguments.op_id] = running, request

    def after(self, arguments):
        found = self.running.pop(arguments.op_id, None)
        if found is not None:
            self.observer.follow(arguments.work, *found)
            self.observer.last_unseen[get_ident()] = found[1]


def _unregister(reference, number):
    """A group that outlives the interpreter would end its hooks without it, which is a segmentation fault."""
    group = reference()
    if group is not None:
        group.unregister_pre_hook(number)
        group.unregister_post_hook(number)


def install(torch, observer, names, bytes_of, device_of):
    distributed = torch.distributed
    c10d = distributed.distributed_c10d
    is_compiling = is_compiling_of(torch)
    if not hasattr(torch._C._distributed_c10d.ProcessGroup, "register_pre_hook"):
        return functional_hooks.install(observer, bytes_of, device_of, is_compiling)
    cpu = torch.device("cpu")

    def make_register(original):
        def _register_process_group(name, group, *args, **kwargs):
            result = original(name, group, *args, **kwargs)
            if ranges.phases.attach():
                known = observer.group_of(group)
                del observer.groups[id(group)]  # torch does not know yet whether it is the default group
                if known.backend(group, cpu):  # else other sources record it
                    hooks, number = GroupHooks(observer, known.reference, names, bytes_of, device_of), next(_hook_ids)
                    group.register_pre_hook(number, hooks.before)
                    group.register_post_hook(number, hooks.after)
                    atexit.register(_unregister, known.reference, number)
            return result

        return _register_process_group

    hooked(c10d, "_register_process_group", make_register)

    def make_wait(original):
        def wait(*args, **kwargs):
            request = observer.last_unseen.get(get_ident(), 0)
            if not request:
                return original(*args, **kwargs)
            ranges.push_wait(request, request)
            try:
                return original(*args, **kwargs)
            finally:
                ranges.pop()

        return function_around(wait, original, is_compiling)

    from torch.distributed import _functional_collectives

    for name in ("wait_tensor", "wait_tensors"):
        hooked(_functional_collectives, name, make_wait)
