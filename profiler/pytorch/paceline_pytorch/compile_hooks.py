"""Prepares the hooks for torch.compile, before it is loaded."""
from .training import before_compile


def install(module):
    while before_compile:
        before_compile.pop()()
