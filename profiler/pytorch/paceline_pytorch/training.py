# SPDX-License-Identifier: Apache-2.0
"""Forward, backward, optimizer, evaluation, checkpoints and copies to the device."""
import functools
import weakref

from . import ranges
from .description import saw_forward
from .iterations import iterations

phases = ranges.phases

before_compile = []  # functions to call before torch.compile reads the first function
is_compile_used = False


def compile_is_used():
    global is_compile_used
    is_compile_used = True
    while before_compile:
        before_compile.pop()()


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


def is_compiling_of(torch):
    """The function that is true while torch.compile reads a function; the hooks have no part in what it makes."""
    return getattr(getattr(torch, "compiler", None), "is_compiling", bool)


def function_around(call, original, is_compiling):
    """A function of Python that calls a built-in hook of the original. It is for functions whose name and signature
    programs look at. Programs that do not use torch.compile are spared the question whether it reads the function."""

    def hook(*args, **kwargs):
        return call(*args, **kwargs)

    def make_readable():
        nonlocal call
        recorded = call

        def choose(*args, **kwargs):
            if is_compiling():
                return original(*args, **kwargs)
            return recorded(*args, **kwargs)

        call = choose

    if is_compile_used:
        make_readable()
    else:
        before_compile.append(make_readable)
    return hook


# --- forward

evaluated = None  # a reference to the module whose eval() was called last

# What Module.__call__ uses before it calls forward(), in torch 1.13.
_NAMES_IN_TORCH_1 = (
    "_C", "_get_tracing_state", "_slow_forward", "forward", "_backward_hooks", "_forward_hooks", "_forward_pre_hooks",
    "_global_backward_hooks", "_global_forward_hooks", "_global_forward_pre_hooks",
)  # fmt: skip


def install_forward(torch, modules):
    """`modules`: inner modules get ranges with their names too."""
    is_grad_enabled = torch.is_grad_enabled
    is_compiling = is_compiling_of(torch)
    is_inside, begin_forward, end_inside = phases.is_inside, phases.begin_forward, phases.end_inside
    # torch.jit.trace records even that somebody reads a shape. What it calls is no forward for training.
    is_tracing = torch._C._get_tracing_state

    def outermost(call, module, args, kwargs):
        if is_tracing():
            return call(*args, **kwargs)
        if begin_forward(is_grad_enabled()):
            saw_forward(module, args, kwargs)
        try:
            return call(*args, **kwargs)
        finally:
            end_inside()

    def is_torch_2(original):
        return original.__code__.co_names == ("_compiled_call_impl", "_call_impl")

    # Each variant does what Module.__call__ does in that version of torch, because a further call for each module of
    # a network would cost more than all other hooks.
    def make(original):
        if modules:
            return _with_module_names(original, outermost, lambda: is_compiling() or is_tracing())
        names = original.__code__.co_names
        if names[1:11] == _NAMES_IN_TORCH_1:
            of_all = vars(torch.nn.modules.module)
            of_backwards, of_forwards = of_all["_global_backward_hooks"], of_all["_global_forward_hooks"]
            before_forwards = of_all["_global_forward_pre_hooks"]

            def __call__(self, *args, **kwargs):
                if is_inside():
                    if (self._backward_hooks or self._forward_hooks or self._forward_pre_hooks or of_backwards
                            or of_forwards or before_forwards or is_tracing()):  # fmt: skip
                        return original(self, *args, **kwargs)
                    return self.forward(*args, **kwargs)
                return outermost(self._call_impl, self, args, kwargs)

        elif original.__code__.co_name == "_call_impl":  # torch 2.0

            def __call__(self, *args, **kwargs):
                if is_inside():
                    return self._call_impl(*args, **kwargs)
                return outermost(self._call_impl, self, args, kwargs)

        elif is_torch_2(original):
            is_read = getattr(getattr(torch, "compiler", None), "is_dynamo_compiling", is_compiling)  # costs less

            def __call__(self, *args, **kwargs):
                if is_inside() or is_tracing():
                    if self._compiled_call_impl is not None:
                        return self._compiled_call_impl(*args, **kwargs)
                    return self._call_impl(*args, **kwargs)
                if begin_forward(is_grad_enabled()):
                    saw_forward(self, args, kwargs)
                try:
                    if self._compiled_call_impl is not None:
                        return self._compiled_call_impl(*args, **kwargs)
                    return self._call_impl(*args, **kwargs)
                finally:
                    end_inside()
                return is_read  # never reached: both functions have the same variables

            # torch.compile traces __call__ of modules with hooks, and cannot trace is_inside().
            def readable(self, *args, **kwargs):
                if is_read() or is_inside() or is_tracing():
                    if self._compiled_call_impl is not None:
                        return self._compiled_call_impl(*args, **kwargs)
                    return self._call_impl(*args, **kwargs)
                if begin_forward(is_grad_enabled()):
                    saw_forward(self, args, kwargs)
                try:
                    if self._compiled_call_impl is not None:
                        return self._compiled_call_impl(*args, **kwargs)
                    return self._call_impl(*args, **kwargs)
                finally:
                    end_inside()

            # torch.compile decides by the file of a function whether to compile it alone. Like torch's own __call__, this
            # one must only be traced inside other functions, so it gets the name of torch's file. It stays the same
            # function, because torch.compile remembers the one that it found when it was loaded.
            def make_readable():
                __call__.__code__ = readable.__code__.replace(co_filename=torch.nn.modules.module.__file__)

            if is_compile_used:
                make_readable()
            else:
                before_compile.append(make_readable)

        else:

            def __call__(self, *args, **kwargs):
                if is_inside():
                    return original(self, *args, **kwargs)
                return outermost(functools.partial(original, self), self, args, kwargs)

        return __call__

    hooked(torch.nn.Module, "__call__", make)
    hooked(torch.nn.Module, "eval", make_eval)


def make_eval(original):
    def eval(self):
        global evaluated
        evaluated = weakref.ref(self)
        phases.note_evaluation()
        return original(self)

    return eval


def is_evaluating():
    """True after Module.eval(), until the module trains again or there is a forward for training."""
    module = evaluated() if evaluated is not None else None
    return module is not None and not module.training and phases.is_evaluating()


def _with_module_names(original, outermost, is_read):
    push, pop, is_inside = ranges.push, ranges.pop, phases.is_inside
    known = {}  # by id: a reference to the module, and the kind of its range

    def name_modules(root):
        for name, module in root.named_modules():
            if name:
                known[id(module)] = (weakref.ref(module), ranges.kind(name, "module"))

    def __call__(self, *args, **kwargs):
        if is_read():
            return original(self, *args, **kwargs)
        if not is_inside():
            entry = known.get(id(self))
            if entry is None or entry[0]() is not self:
                if phases.attach():
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
        return function_around(ranges.hook("around_backward", original), original, is_compiling)

    autograd = torch.autograd
    shared = getattr(autograd, "_engine_run_backward", None)
    if shared is None:
        hooked(autograd, "backward", make)
        hooked(autograd, "grad", make)
    elif is_compile_used:
        hooked(autograd, "_engine_run_backward", make)
    elif not is_hook(shared) and shared.__name__ != "around_backward":
        # The function that backward() and grad() share. Nothing looks at its signature, so a built-in function does.
        autograd._engine_run_backward = built_in = ranges.hook("around_backward", shared)

        def make_readable():
            if autograd._engine_run_backward is built_in:
                autograd._engine_run_backward = shared
                hooked(autograd, "_engine_run_backward", make)

        before_compile.append(make_readable)


# --- optimizers


def _timed_step(optimizer, original, args, kwargs):
    if phases.is_in_step() or not phases.attach():
        return original(*args, **kwargs)
    iterations.before_step(optimizer)
    phases.begin_step()
    try:
        return original(*args, **kwargs)
    finally:
        if phases.end_step():
            iterations.after_step(optimizer)


def _step_hook(original, is_compiling):
    def other_step(optimizer, *args, **kwargs):
        return _timed_step(optimizer, original, (optimizer, *args), kwargs)

    return function_around(ranges.hook("around_step", (original, other_step)), original, is_compiling)


def install_optimizers(torch):
    optimizer_class = torch.optim.Optimizer
    is_compiling = is_compiling_of(torch)

    def make_init(original):
        def __init__(self, *args, **kwargs):
            original(self, *args, **kwargs)
            iterations.made(self)
            _hook_step_of(type(self), is_compiling)

        return __init__

    def make_setstate(original):
        def __setstate__(self, state):
            original(self, state)
            _hook_step_of(type(self), is_compiling)

        return __setstate__

    def make_zero_grad(original):
        return function_around(ranges.hook("around_zero_grad", original), original, is_compiling)

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
    begin()
    try:
        return original(*args, **kwargs)
    finally:
        phases.leave()


# --- what a framework does around these calls, such as scaling a loss before its backward


def phase_hook(phase, original, is_grad_enabled, new_batch=False):
    """A function of a framework that is a part of training belongs to one phase as a whole."""
    begin = getattr(phases, "enter_" + phase)
    begin_work = phases.begin_work_on_batch if new_batch else phases.begin_work

    def call(*args, **kwargs):
        if not is_grad_enabled() or not phases.attach():
            return original(*args, **kwargs)
        begin_work()
        return in_range(begin, original, args, kwargs)

    return call


def install_clipping(torch):
    is_compiling, utils = is_compiling_of(torch), torch.nn.utils

    def make(original):
        return function_around(ranges.hook("around_clipping", original), original, is_compiling)

    for name in ("clip_grad_norm_", "clip_grad_value_"):
        if hooked(utils, name, make):
            setattr(utils.clip_grad, name, getattr(utils, name))


# --- checkpoints, and copies to the device


def checkpoint_hook(original):
    def save(*args, **kwargs):
        if not phases.attach():
            return original(*args, **kwargs)
        phases.begin_interlude()
        return in_range(phases.enter_checkpoint, original, args, kwargs)

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
            if is_cuda(self) or not phases.begin_copy():
                return original(self, *args, **kwargs)
            try:
                return original(self, *args, **kwargs)
            finally:
                phases.leave()

        return copy

    def make_start(original):
        def _lazy_init():
            original()
            hooked(torch.Tensor, "to", make_copy)
            hooked(torch.Tensor, "cuda", make_copy)
            torch.cuda._lazy_init = original

        return _lazy_init

    hooked(torch.cuda, "_lazy_init", make_start)
