"""Forward, backward, optimizer, evaluation, checkpoints and copies to the device."""
import functools
import os
import weakref
from _thread import get_ident

from . import ranges
from .description import description as job
from .description import saw_forward
from .iterations import iterations

kinds, push, pop, attach = ranges.kinds, ranges.push, ranges.pop, ranges.attach

inside = set()  # threads inside a forward or the fetching of a batch: modules that they call are part of it
in_backward = set()  # threads; CUDA's backward runs on threads of its own
compiles = []  # not empty once torch.compile is loaded
before_compile = [lambda: compiles.append(True)]  # functions to call when that happens
os.register_at_fork(after_in_child=inside.clear)
os.register_at_fork(after_in_child=in_backward.clear)


def mark_as_hook(hook, original):
    """Gives the hook the name, text and signature of the original."""
    functools.update_wrapper(hook, original)
    hook.__paceline__ = True
    return hook


def is_hook(function):
    return getattr(function, "__paceline__", False)


def hooked(owner, name, make):
    """Replaces owner.name by make(original), unless it is replaced already."""
    original = getattr(owner, name, None)
    if original is None:
        return False
    if not is_hook(original):
        setattr(owner, name, mark_as_hook(make(original), original))
    return True


def replace(owner, name, make):
    original = getattr(owner, name)
    setattr(owner, name, mark_as_hook(make(original), original))


def is_compiling_of(torch):
    """The function that is true while torch.compile reads a function; the hooks have no part in what it makes. Until
    torch.compile is loaded, a hook looks at `compiles` alone, which costs less."""
    return getattr(getattr(torch, "compiler", None), "is_compiling", bool)


# --- forward


def install_forward(torch, modules):
    """`modules`: inner modules get ranges with their names too."""
    is_grad_enabled = torch.is_grad_enabled
    is_compiling = is_compiling_of(torch)

    def outermost(call, module, args, kwargs):
        if not kinds.ready and not attach():
            return call(*args, **kwargs)
        grad = is_grad_enabled()
        if in_backward:
            begin = kinds.recompute  # activation checkpointing
        elif grad:
            iterations.work()
            iterations.evaluating = False
            begin = kinds.forward
            if job.wants_forward:
                saw_forward(module, args, kwargs)
        elif iterations.is_open and not iterations.stepped:
            begin = kinds.forward  # a part of the step, such as a teacher's
        else:
            iterations.interlude()
            begin = kinds.evaluate
        thread = get_ident()
        counts = iterations.enter(thread)
        begin()
        inside.add(thread)
        try:
            return call(*args, **kwargs)
        finally:
            inside.discard(thread)
            pop()
            iterations.depth -= counts

    def is_torch_2(original):
        return original.__code__.co_names == ("_compiled_call_impl", "_call_impl")

    # Each variant does what Module.__call__ does in that version of torch, because a further call for each module of
    # a network would cost more than all other hooks.
    def make(original):
        if modules:
            return _with_module_names(original, outermost, is_compiling)
        if original.__code__.co_name == "_call_impl":  # torch 1

            def __call__(self, *args, **kwargs):
                if get_ident() in inside:
                    return self._call_impl(*args, **kwargs)
                return outermost(self._call_impl, self, args, kwargs)

        elif is_torch_2(original):

            def __call__(self, *args, **kwargs):
                if get_ident() in inside:
                    compiled = self._compiled_call_impl
                    if compiled is not None:
                        return compiled(*args, **kwargs)
                    return self._call_impl(*args, **kwargs)
                call = self._call_impl if self._compiled_call_impl is None else self._compiled_call_impl
                return outermost(call, self, args, kwargs)

        else:

            def __call__(self, *args, **kwargs):
                if get_ident() in inside:
                    return original(self, *args, **kwargs)
                return outermost(functools.partial(original, self), self, args, kwargs)

        return __call__

    hooked(torch.nn.Module, "__call__", make)

    # torch.compile traces __call__ of modules with hooks, and cannot trace get_ident(). It decides by the file of a function
    # whether to compile it alone. Like torch's own __call__, this one must only be traced inside other functions, so it
    # gets the name of torch's file. Programs that do not use torch.compile are spared the additional call.
    def make_readable(original):
        is_read = getattr(getattr(torch, "compiler", None), "is_dynamo_compiling", is_compiling)  # costs less

        def __call__(self, *args, **kwargs):
            if is_read() or get_ident() in inside:
                if self._compiled_call_impl is not None:
                    return self._compiled_call_impl(*args, **kwargs)
                return self._call_impl(*args, **kwargs)
            return original(self, *args, **kwargs)

        __call__.__code__ = __call__.__code__.replace(co_filename=torch.nn.modules.module.__file__)
        return __call__

    if is_torch_2(torch.nn.Module.__call__.__wrapped__) and not modules:
        before_compile.append(lambda: replace(torch.nn.Module, "__call__", make_readable))

    def make_eval(original):
        def eval(self):
            iterations.evaluating = True
            return original(self)

        return eval

    hooked(torch.nn.Module, "eval", make_eval)


def _with_module_names(original, outermost, is_compiling):
    known = {}  # by id: a reference to the module, and the kind of its range

    def name_modules(root):
        for name, module in root.named_modules():
            if name:
                known[id(module)] = (weakref.ref(module), ranges.kind(name, "module"))

    def __call__(self, *args, **kwargs):
        if is_compiling():
            return original(self, *args, **kwargs)
        if get_ident() not in inside:
            entry = known.get(id(self))
            if entry is None or entry[0]() is not self:
                if kinds.ready or attach():
                    name_modules(self)
                    known[id(self)] = (weakref.ref(self), 0)
            return outermost(functools.partial(original, self), self, args, kwargs)
        entry = known.get(id(self))
        if entry is None or entry[0]() is not self:
            name_modules(self)
            entry = known[id(self)] = (weakref.ref(self), ranges.kind(type(self).__name__, "module"))
        if not entry[1]:
            return original(self, *args, **kwargs)
        push(entry[1])
        try:
            return original(self, *args, **kwargs)
        finally:
            pop()

    return __call__


# --- backward


def install_backward(torch):
    is_compiling = is_compiling_of(torch)

    def make(original):
        def backward(*args, **kwargs):
            if compiles and is_compiling():
                return original(*args, **kwargs)
            thread = get_ident()
            if thread in in_backward or (not kinds.ready and not attach()):
                return original(*args, **kwargs)
            iterations.work()
            job.backwards += 1
            counts = iterations.enter(thread)
            kinds.backward()
            in_backward.add(thread)
            try:
                return original(*args, **kwargs)
            finally:
                in_backward.discard(thread)
                pop()
                iterations.depth -= counts

        return backward

    # The function that backward() and grad() share, where there is one.
    if not hooked(torch.autograd, "_engine_run_backward", make):
        hooked(torch.autograd, "backward", make)
        hooked(torch.autograd, "grad", make)


# --- optimizers


def _timed_step(optimizer, original, args, kwargs):
    if iterations.in_step or (not kinds.ready and not attach()):
        return original(*args, **kwargs)
    iterations.before_step(optimizer)
    counts = iterations.enter(get_ident())
    kinds.optimizer()
    iterations.in_step = True
    try:
        return original(*args, **kwargs)
    finally:
        iterations.in_step = False
        pop()
        iterations.depth -= counts
        iterations.after_step(optimizer)


def _step_hook(original, is_compiling):
    def step(self, *args, **kwargs):
        if (compiles and is_compiling()) or iterations.in_step:
            return original(self, *args, **kwargs)
        return _timed_step(self, original, (self, *args), kwargs)

    return step


def install_optimizers(torch):
    optimizer_class = torch.optim.Optimizer
    is_compiling = is_compiling_of(torch)

    def make_init(original):
        def __init__(self, *args, **kwargs):
            original(self, *args, **kwargs)
            iterations.optimizers.add(self)
            _hook_step_of(type(self), is_compiling)

        return __init__

    def make_setstate(original):
        def __setstate__(self, state):
            original(self, state)
            _hook_step_of(type(self), is_compiling)

        return __setstate__

    def make_zero_grad(original):
        def zero_grad(self, *args, **kwargs):
            if (compiles and is_compiling()) or not kinds.ready or not iterations.is_open:
                return original(self, *args, **kwargs)
            kinds.zero_grad()
            try:
                return original(self, *args, **kwargs)
            finally:
                pop()

        return zero_grad

    hooked(optimizer_class, "__init__", make_init)
    hooked(optimizer_class, "__setstate__", make_setstate)
    hooked(optimizer_class, "zero_grad", make_zero_grad)
    hooked(torch.nn.Module, "zero_grad", make_zero_grad)

    # A step of a scaler counts, also if it skips the optimizer's because of an overflow.
    def make_scaler_step(original):
        def step(self, optimizer, *args, **kwargs):
            return _timed_step(optimizer, original, (self, optimizer, *args), kwargs)

        return step

    for module in (getattr(torch, "amp", None), getattr(torch.cuda, "amp", None)):
        scaler = getattr(module, "GradScaler", None)
        if scaler is not None and "step" in vars(scaler):
            hooked(scaler, "step", make_scaler_step)


def _hook_step_of(optimizer_class, is_compiling):
    """The step of a class of optimizers, which torch itself has replaced by a function that calls it."""
    for of in optimizer_class.__mro__:
        if "step" in vars(of):
            hooked(of, "step", lambda original: _step_hook(original, is_compiling))
            return


def in_range(begin, original, args, kwargs):
    """Calls the original in a range."""
    counts = iterations.enter(get_ident())
    begin()
    try:
        return original(*args, **kwargs)
    finally:
        pop()
        iterations.depth -= counts


# --- what a framework does around these calls, such as scaling a loss before its backward


def phase_hook(slot, original, is_grad_enabled, new_batch=False):
    """A function of a framework that is a part of training belongs to one phase as a whole."""

    def call(*args, **kwargs):
        if not is_grad_enabled() or (not kinds.ready and not attach()):
            return original(*args, **kwargs)
        iterations.work(new_batch)
        return in_range(getattr(kinds, slot), original, args, kwargs)

    return call


# --- checkpoints, and copies to the device


def checkpoint_hook(original):
    def save(*args, **kwargs):
        if not kinds.ready and not attach():
            return original(*args, **kwargs)
        iterations.interlude()
        return in_range(kinds.checkpoint, original, args, kwargs)

    return save


def install_checkpoints(torch):
    if hooked(torch, "save", checkpoint_hook):
        torch.serialization.save = torch.save


def install_copies(torch):
    """Tensor.to() and Tensor.cuda() of tensors on the host. They are replaced when CUDA starts, so that programs without
    it are left alone."""
    is_cuda = torch.Tensor.is_cuda.__get__

    def make_copy(original):
        def copy(self, *args, **kwargs):
            if is_cuda(self) or not kinds.ready or get_ident() in inside:
                return original(self, *args, **kwargs)
            kinds.copy()
            try:
                return original(self, *args, **kwargs)
            finally:
                pop()

        return copy

    def make_start(original):
        def _lazy_init():
            original()
            hooked(torch.Tensor, "to", make_copy)
            hooked(torch.Tensor, "cuda", make_copy)
            torch.cuda._lazy_init = original

        return _lazy_init

    hooked(torch.cuda, "_lazy_init", make_start)
