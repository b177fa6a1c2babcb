"""Prepares the hooks for torch.compile, before it is loaded."""
from .training import compile_is_loaded


def install(module):
    compile_is_loaded()
