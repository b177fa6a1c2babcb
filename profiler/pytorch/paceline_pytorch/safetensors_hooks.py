# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that are saved by safetensors."""
from .training import checkpoint_hook, hooked


def install(module):
    for name in ("save_file", "save_model"):
        hooked(module, name, checkpoint_hook)
