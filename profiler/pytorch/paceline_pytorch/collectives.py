# SPDX-License-Identifier: Apache-2.0
"""Collectives and messages of torch.distributed, on backends that the recorder does not see otherwise (gloo, UCC, …).

The methods of ProcessGroup are replaced, which every function of torch.distributed, FSDP and other Python code calls. The
function that a call came from shows whether it waits: `all_reduce(tensor)` is one range from the call to its end, and
`all_reduce(tensor, async_op=True)` is a range from the call to the completion, and another one in Work.wait().

DistributedDataParallel's reducer calls its process group from C++. It gets a process group that passes every call on to
the real one. At the end of a backward the reducer waits; two callbacks of the autograd engine, one before the reducer's
and one after it, make the range of that wait. A communication hook that is written in Python calls its collectives itself, and
the reducer waits for the hook's future: the first bucket of a backward queues the callbacks there, too.
"""
import atexit
import itertools
import os
import sys
import weakref
from _thread import get_ident

from . import completion, group_hooks, ranges
from .training import hooked, in_range

attach, pop = ranges.phases.attach, ranges.pop
push_collective, start_collective = ranges.push_collective, ranges.start_collective
start_message, end, push_wait = ranges.start_message, ranges.end, ranges.push_wait

_OTHERS_RECORD = ("nccl", "mpi")  # these backends' calls are in the trace already

# Method: its name in the trace, and which argument has the bytes of all ranks' parts together.
_COLLECTIVES = {
    "allreduce": ("all_reduce", 0),
    "allreduce_coalesced": ("all_reduce", 0),
    "broadcast": ("broadcast", 0),
    "reduce": ("reduce", 0),
    "allgather": ("all_gather", 0),
    "_allgather_base": ("all_gather", 0),
    "allgather_coalesced": ("all_gather", 0),
    "allgather_into_tensor_coalesced": ("all_gather", 0),
    "reduce_scatter": ("reduce_scatter", 1),
    "_reduce_scatter_base": ("reduce_scatter", 1),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter", 1),
    "alltoall": ("all_to_all", 1),
    "alltoall_base": ("all_to_all", 1),
    "all_gather_single": ("all_gather", 0),
    "all_gather_single_coalesced": ("all_gather", 0),
    "reduce_scatter_single": ("reduce_scatter", 1),
    "reduce_scatter_single_coalesced": ("reduce_scatter", 1),
    "all_to_all_single": ("all_to_all", 1),
    "gather": ("gather", 0),
    "gather_into_tensor": ("gather", 0),
    "gather_single": ("gather", 0),
    "scatter": ("scatter", 1),
    "barrier": ("barrier", None),
    "monitored_barrier": ("barrier", None),
}
_MESSAGES = ("send", "recv", "recv_anysource")
_WAITING_CALLERS = ("send", "recv", "monitored_barrier")

_requests = itertools.count(1)


def _bytes_of(value):
    if isinstance(value, (list, tuple)):
        return sum(map(_bytes_of, value))
    try:
        return value.numel() * value.element_size()
    except (AttributeError, TypeError, RuntimeError):
        return 0


def _device_of(values):
    for value in values:
        while isinstance(value, (list, tuple)) and value:
            value = value[0]
        device = getattr(value, "device", None)
        if device is not None and hasattr(device, "type"):
            return device
    return None


def _name_of(group):
    return group._get_backend_name() if hasattr(group, "_get_backend_name") else group.name()


class Group:
    """What is known of a process group."""

    def __init__(self, group, distributed, sequences):
        self.reference = weakref.ref(group)
        self.members = group.size()
        self.backends = {}  # name by type of device; "" if others record it
        self.operations = {}  # kind by method and backend
        name = str(getattr(group, "group_name", None) or "")
        if not name:
            names = getattr(distributed.distributed_c10d, "_pg_names", {})
            name = str(names.get(group, "?"))
        is_world = group is distributed.GroupMember.WORLD or group is getattr(distributed.group, "WORLD", None)
        text = "default group" if is_world else "group " + name
        self.communicator = ranges.kind(text)
        # A group that is made again under the same name goes on counting, so that no number is there twice.
        self.sequence = sequences.setdefault(text, itertools.count())
        self.seen = self.unseen = 0  # calls
        self.first_number = None  # some versions of PyTorch begin at a random one
        if _name_of(group) == "gloo":
            try:
                self.first_number = group._get_sequence_number_for_group()
            except (AttributeError, RuntimeError):  # it does not count
                pass

    def number(self):
        """That of a new collective."""
        self.seen += 1
        return next(self.sequence)

    def calls(self):
        """How many calls the group has issued since the recorder saw it first, by its own count; 0 where it does not count."""
        real = self.reference()
        if real is None or self.first_number is None:
            return 0
        return real._get_sequence_number_for_group() - self.first_number

    def backend(self, group, device):
        of = device.type if device is not None else ""
        if of not in self.backends:
            name = ""
            if device is not None:
                try:
                    name = group._get_backend(device).name()
                except (AttributeError, RuntimeError):
                    pass
            if not name:
                name = _name_of(group)
            name = name.lower()
            self.backends[of] = "" if any(other in name for other in _OTHERS_RECORD) else name
        return self.backends[of]

    def kind(self, method, backend):
        key = method, backend
        if key not in self.operations:
            name = _COLLECTIVES[method][0] if method in _COLLECTIVES else method
            category = "collective" if method in _COLLECTIVES else "point-to-point"
            self.operations[key] = ranges.kind("%s:%s" % (backend, name), category)
        return self.operations[key]


class Observer:
    def __init__(self, distributed):
        self.distributed = distributed
        self.groups = {}  # by id
        self.sequences = {}  # by name of a group
        self.waiting = {}  # by id of a Work: what its wait() ends
        self.reducing = {}  # by thread: the requests of the buckets in the current backward, first and last
        self.issuing = set()  # threads in a replaced method
        self.last_unseen = {}  # by thread: the request of its last collective that no replaced method issued
        os.register_at_fork(after_in_child=self.waiting.clear)

    def new_request(self):
        return next(_requests)

    def group_of(self, group):
        known = self.groups.get(id(group))
        if known is None or known.reference() is not group:
            known = self.groups[id(group)] = Group(group, self.distributed, self.sequences)
        return known

    def waits(self, frame):
        """True if the function of torch.distributed that made this call waits before it returns."""
        if frame.f_globals.get("__name__") != "torch.distributed.distributed_c10d":
            return False
        waits = frame.f_locals.get("async_op", None)
        return frame.f_code.co_name in _WAITING_CALLERS if waits is None else not waits

    def hook_method(self, method):
        of = _COLLECTIVES[method][1] if method in _COLLECTIVES else 0
        is_message = method in _MESSAGES
        part = {"gather": 1, "scatter": 0}.get(_COLLECTIVES.get(method, ("",))[0])  # only the root has those of all ranks

        def make(original):
            def call(self_, *args, **kwargs):
                if not attach():
                    return original(self_, *args, **kwargs)
                try:
                    group = self.group_of(self_)
                    values = (*args, *kwargs.values())
                    backend = group.backend(self_, _device_of(values))
                    kind = group.kind(method, backend) if backend else 0
                    size = _bytes_of(values[of]) if of is not None and len(values) > of else 0
                    if part is not None:
                        size = _bytes_of(values[part]) * group.members if len(values) > part else 0
                except Exception:  # an unknown kind of group
                    kind = 0
                if not kind:
                    return original(self_, *args, **kwargs)
                thread = get_ident()
                self.issuing.add(thread)
                try:
                    if is_message:
                        return self.message(group, kind, size, original, self_, args, kwargs)
                    sequence = group.number()
                    if method == "monitored_barrier" or self.waits(sys._getframe(1)):
                        return self.blocking(group, kind, size, sequence, original, self_, args, kwargs)
                    return self.asynchronous(group, kind, size, sequence, original, self_, args, kwargs)
                finally:
                    self.issuing.discard(thread)

            return call

        return make

    def blocking(self, group, kind, size, sequence, original, self_, args, kwargs):
        push_collective(kind, group.communicator, size, sequence, group.members)
        try:
            work = original(self_, *args, **kwargs)
        except BaseException:
            pop()
            raise
        if work is None:
            pop()
        else:
            self.waiting[id(work)] = (get_ident(), 0, 0)
        return work

    def asynchronous(self, group, kind, size, sequence, original, self_, args, kwargs):
        request = next(_requests)
        running = start_collective(kind, group.communicator, size, sequence, group.members, request)
        try:
            work = original(self_, *args, **kwargs)
        except BaseException:
            end(running)
            raise
        self.follow(work, running, request)
        return work

    def message(self, group, kind, size, original, self_, args, kwargs):
        group.seen += 1
        request = next(_requests)
        numbers = [value for value in (*args, *kwargs.values()) if isinstance(value, int)]
        peer, tag = (numbers + [-1, 0])[:2] if len(numbers) != 1 else (-1, numbers[0])
        running = start_message(kind, group.communicator, size, peer, tag, request)
        try:
            work = original(self_, *args, **kwargs)
        except BaseException:
            end(running)
            raise
        self.follow(work, running, request)
        return work

    def follow(self, work, running, request):
        """Ends the range when the work is complete."""
        if work is None:
            return end(running)
        ended_by_wait = 0
        try:
            completion.end_with(work.get_future(), running)
        except Exception:  # not every kind of work has a future
            ended_by_wait = running
        self.waiting[id(work)] = (0, request, ended_by_wait)
        thread = get_ident()
        if thread in self.reducing:
            self.reducing[thread][1] = request

    def hook_wait(self, original):
        def wait(self_, *args, **kwargs):
            found = self.waiting.pop(id(self_), None)
            if found is None:
                return original(self_, *args, **kwargs)
            thread, request, ended_by_wait = found
            if request == 0:  # the range of a blocking call is open
                try:
                    return original(self_, *args, **kwargs)
                finally:
                    if thread == get_ident():
                        pop()
            push_wait(request, request)
            try:
                return original(self_, *args, **kwargs)
            finally:
                pop()
                if ended_by_wait:
                    end(ended_by_wait)

        return wait

    def hook_broadcast_coalesced(self, original):
        def _broadcast_coalesced(process_group, tensors, *args, **kwargs):
            if not attach():
                return original(process_group, tensors, *args, **kwargs)
            group = self.group_of(process_group)
            tensors = list(tensors)
            backend = group.backend(process_group, _device_of(tensors))
            if not backend:
                return original(process_group, tensors, *args, **kwargs)
            sequence, thread = group.number(), get_ident()
            calls = group.calls()
            push_collective(group.kind("broadcast", backend), group.communicator, _bytes_of(tensors), sequence,
                            group.members)
            self.issuing.add(thread)  # it makes a broadcast for each type of data
            try:
                return original(process_group, tensors, *args, **kwargs)
            finally:
                self.issuing.discard(thread)
                pop()
                group.seen += max(group.calls() - calls - 1, 0)

        return _broadcast_coalesced

    def note_unseen(self):
        """Marks calls that passed no hook, such as those of torch.compile, where they are a tenth of all or more. Gloo numbers its
        calls. Few are none of the program's: a reducer compares its parameters when it is made."""
        for group in self.groups.values():
            unseen = group.calls() - group.seen
            if unseen >= 20 and 10 * unseen >= group.calls() and unseen > group.unseen:
                ranges.mark_value(ranges.kind("collectives that were not observed", "unobserved"), float(unseen - group.unseen))
                group.unseen = unseen

    # --- DistributedDataParallel

    def wait_of_reducer(self, queue_callback):
        """Called in a backward, before the reducer queues the callback in which it waits."""
        thread = get_ident()

        def before():
            first, last, _ = self.reducing.pop(thread, (0, 0, 0))
            push_wait(first, last)
            queue_callback(after)

        def after():
            pop()

        queue_callback(before)

    def reduce_bucket(self, queue_callback, reduce):
        """Calls the function that starts the reduction of a bucket; the first one of a backward asks for the wait's range."""
        thread = get_ident()
        # An earlier backward that failed has left its entry.
        first = thread not in self.reducing or self.reducing[thread][2] != ranges.count_backwards()
        if first:
            self.reducing[thread] = [0, 0, ranges.count_backwards()]
        started = reduce()
        if first:
            requests = self.reducing[thread]
            requests[0] = requests[1]
            try:
                self.wait_of_reducer(queue_callback)
            except RuntimeError:  # not in a backward
                del self.reducing[thread]
        return started

    def hook_register(self, queue_callback):
        """For dist._register_comm_hook(reducer, state, hook)."""

        def make(original):
            def _register_comm_hook(reducer, state, hook):
                def observed(of_state, bucket):
                    if not attach():
                        return hook(of_state, bucket)
                    return self.reduce_bucket(queue_callback, lambda: hook(of_state, bucket))

                return original(reducer, state, observed)

            return _register_comm_hook

        return make

    def observed_group(self, process_group_class, queue_callback):
        observer = self

        class ObservedProcessGroup(process_group_class):
            """Passes every call on to the real process group."""

            def __init__(self, real):
                super().__init__(real.rank(), real.size())
                self.real = real

            def allreduce(self, *args, **kwargs):
                return observer.reduce_bucket(queue_callback, lambda: self.real.allreduce(*args, **kwargs))

        def passing_on(name):
            def call(self, *args, **kwargs):
                return getattr(self.real, name)(*args, **kwargs)

            return call

        for name in dir(process_group_class):
            if not name.startswith("__") and name not in vars(ObservedProcessGroup):
                if callable(getattr(process_group_class, name)) and not isinstance(vars(process_group_class).get(name), type):
                    setattr(ObservedProcessGroup, name, passing_on(name))
        # C++ takes a group that is called "gloo" for an object of its own class.
        ObservedProcessGroup.getBackendName = lambda self: "observed " + _name_of(self.real)
        return ObservedProcessGroup


def install(torch):
    distributed = torch.distributed
    if not distributed.is_available():
        return
    c10d = torch._C._distributed_c10d
    observer = Observer(distributed)
    process_group = c10d.ProcessGroup
    queue_callback = torch.autograd.Variable._execution_engine.queue_callback
    observed = observer.observed_group(process_group, queue_callback)
    for method in (*_COLLECTIVES, *_MESSAGES):
        hooked(process_group, method, observer.hook_method(method))
    hooked(c10d.Work, "wait", observer.hook_wait)
    hooked(distributed, "_broadcast_coalesced", observer.hook_broadcast_coalesced)
    group_hooks.install(torch, observer, _COLLECTIVES, _bytes_of, _device_of)
    hooked(distributed, "_register_comm_hook", observer.hook_register(queue_callback))

    atexit.register(observer.note_unseen)

    real_reducer = distributed.Reducer

    class Reducer(real_reducer):
        def __init__(self, *args, **kwargs):
            self.observed_groups = []
            super().__init__(*map(self._observe, args), **{key: self._observe(kwargs[key]) for key in kwargs})

        def _observe(self, value):
            if not isinstance(value, process_group) or isinstance(value, observed):
                return value
            if not attach() or not observer.group_of(value).backend(value, None):
                return value
            self.observed_groups.append(observed(value))  # C++ does not keep the Python object
            return self.observed_groups[-1]

    Reducer.__name__ = Reducer.__qualname__ = real_reducer.__name__
    if not getattr(real_reducer, "__paceline__", False):
        Reducer.__paceline__ = True
        distributed.Reducer = Reducer

    def make_start(original):
        def init_process_group(*args, **kwargs):
            if not attach():
                return original(*args, **kwargs)
            result = in_range(ranges.phases.enter_startup, original, args, kwargs)
            ranges.note_rank(distributed.get_rank(), distributed.get_world_size())
            return result

        return init_process_group

    def make_end(original):
        def destroy_process_group(*args, **kwargs):
            ranges.phases.begin_interlude()  # the last iteration is over
            observer.note_unseen()
            return original(*args, **kwargs)

        return destroy_process_group

    for name, make in (("init_process_group", make_start), ("destroy_process_group", make_end)):
        if hooked(distributed, name, make):
            setattr(distributed.distributed_c10d, name, getattr(distributed, name))
