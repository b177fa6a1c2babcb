"""Keeps torch.compile from compiling the hooks of collectives, which are called inside compiled functions."""
from . import collectives


def install(module):
    from torch._dynamo import trace_rules

    trace_rules.SKIP_DIRS.append(collectives.__file__)
    trace_rules._recompile_re()
