# SPDX-License-Identifier: Apache-2.0
"""Functional collectives, and so DTensor and tensor parallelism, before PyTorch 2.15, whose process groups report nothing.

The functions of torch.distributed._functional_collectives are replaced. Nothing tells when such a collective is complete: its
range ends when its result is awaited.
"""
from _thread import get_ident

from . import ranges
from .training import function_around, hooked

# Function: its kind, the place of the group among its arguments, and whether its input is one rank's part.
_FUNCTIONS = {
    "all_reduce": ("allreduce", 2, False),
    "all_reduce_coalesced": ("allreduce", 2, False),
    "broadcast": ("broadcast", 2, False),
    "all_gather_tensor": ("allgather", 2, True),
    "all_gather_into_tensor_coalesced": ("allgather", 1, True),
    "reduce_scatter_tensor": ("reduce_scatter", 3, False),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter", 3, False),
    "all_to_all_single": ("alltoall", 3, False),
}


def _address_of(tensor):
    try:
        return getattr(tensor, "elem", tensor).data_ptr()
    except (AttributeError, RuntimeError, TypeError):
        return 0


class FunctionalHooks:
    def __init__(self, functional, observer, bytes_of, device_of):
        self.functional, self.observer, self.bytes_of, self.device_of = functional, observer, bytes_of, device_of
        self.inside, self.results = {}, {}  # range and request: by thread, while the function runs; by address of its result

    def group(self, args, kwargs, place):
        group = kwargs["group"] if "group" in kwargs else args[place]
        name = self.functional._resolve_group_name(group, kwargs.get("tag", ""))
        return self.functional.c10d._resolve_process_group(name)

    def start(self, method, place, is_part, args, kwargs):
        """The range and the request; nothing where the collective is not recorded."""
        if not ranges.phases.attach():
            return None
        try:
            real = self.group(args, kwargs, place)
            tensors = args[0] if args else kwargs.get("self", kwargs.get("inputs"))
            group = self.observer.group_of(real)
            backend = group.backend(real, self.device_of([tensors]))
            size = self.bytes_of(tensors)
        except Exception:  # a group or a tensor that this version describes in another way
            return None
        if not backend:
            return None
        request = self.observer.new_request()
        running = ranges.start_collective(group.kind(method, backend), group.communicator,
                                          size * group.members if is_part else size, group.number(), group.members, request)
        return running, request

    def make(self, of):
        def make_hook(original):
            def call(*args, **kwargs):
                started = self.start(*of, args, kwargs)
                if started is None:
                    return original(*args, **kwargs)
                self.inside[get_ident()] = started  # some functions wait themselves
                try:
                    result = original(*args, **kwargs)
                except BaseException:
                    self.end(self.inside.pop(get_ident(), None))
                    raise
                if self.inside.pop(get_ident(), None):
                    address = _address_of(result[-1] if isinstance(result, (list, tuple)) else result)
                    self.end(self.results.pop(address, None))  # nobody awaited it
                    self.results[address] = started
                return result

            return function_around(call, original, self.is_compiling)

        return make_hook

    @staticmethod
    def end(started):
        if started:
            ranges.end(started[0])

    def make_wait(self, original):
        def wait(tensor, *args, **kwargs):
            started = self.results.pop(_address_of(tensor), None) or self.inside.pop(get_ident(), None)
            if not started:
                return original(tensor, *args, **kwargs)
            ranges.push_wait(started[1], started[1])
            try:
                return original(tensor, *args, **kwargs)
            finally:
                ranges.pop()
                self.end(started)

        return function_around(wait, original, self.is_compiling)

    def install(self, is_compiling):
        self.is_compiling = is_compiling
        for name, of in _FUNCTIONS.items():
            hooked(self.functional, name, self.make(of))
        hooked(self.functional, "wait_tensor", self.make_wait)


def install(observer, bytes_of, device_of, is_compiling):
    try:
        from torch.distributed import _functional_collectives as functional
    except ImportError:
        return
    if hasattr(functional, "_resolve_group_name") and hasattr(functional.c10d, "_resolve_process_group"):  # PyTorch 2.3
        FunctionalHooks(functional, observer, bytes_of, device_of).install(is_compiling)
