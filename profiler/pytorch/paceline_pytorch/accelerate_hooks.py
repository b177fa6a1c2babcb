# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Accelerate: what it does around a backward, and the clipping of gradients."""
from .training import hooked, phase_hook


def install(module):
    from torch import is_grad_enabled

    accelerator = module.Accelerator
    hooked(accelerator, "backward", lambda original: phase_hook("backward", original, is_grad_enabled))
    for clip in ("clip_grad_norm_", "clip_grad_value_"):
        hooked(accelerator, clip, lambda original: phase_hook("optimizer", original, is_grad_enabled))
