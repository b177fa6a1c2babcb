# SPDX-License-Identifier: Apache-2.0
"""Prepares the hooks for torch.compile, before it reads the first function.

torch loads torch._dynamo in programs that do not use it: torch 2.15 does when it makes an optimizer.
"""
from . import collectives
from .training import compile_is_used, hooked


def _make_init(original):
    def __init__(self, *args, **kwargs):
        compile_is_used()
        original(self, *args, **kwargs)

    return __init__


def install(module):
    # Keeps torch.compile from compiling the hooks of collectives, which are called inside compiled functions.
    from torch._dynamo import trace_rules

    trace_rules.SKIP_DIRS.append(collectives.__file__)
    trace_rules._recompile_re()
    try:
        from torch._dynamo.eval_frame import OptimizeContext
        from torch._dynamo.symbolic_convert import InstructionTranslatorBase

        for of in (OptimizeContext, InstructionTranslatorBase):
            hooked(of, "__init__", _make_init)
    except Exception:  # something has moved
        compile_is_used()
