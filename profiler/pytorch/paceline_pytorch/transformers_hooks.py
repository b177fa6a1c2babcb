# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's models, whose eval() does not call that of Module. Its Trainer: the parts of a step and of a checkpoint
that are its own work, and the accuracy that an evaluation returns, as the mark `accuracy`."""
from . import ranges
from .training import checkpoint_hook, hooked, make_eval, phase_hook


def _make_evaluate(original):
    def evaluate(self, *args, **kwargs):
        metrics = original(self, *args, **kwargs)
        try:
            accuracy = metrics.get("eval_accuracy")
            if accuracy is not None and ranges.phases.attach():
                ranges.mark_value(ranges.kind("accuracy", "accuracy"), float(accuracy))
        except (AttributeError, TypeError, ValueError):
            pass
        return metrics

    return evaluate


def install(module):
    from torch import is_grad_enabled

    hooked(module.PreTrainedModel, "eval", make_eval)
    trainer = getattr(module, "Trainer", None)
    if trainer is None:  # transformers.modeling_utils, which scripts without the Trainer import too
        return
    hooked(trainer, "evaluate", _make_evaluate)
    hooked(trainer, "get_batch_samples", lambda original: phase_hook("preprocess", original, is_grad_enabled, new_batch=True))
    hooked(trainer, "compute_loss", lambda original: phase_hook("forward", original, is_grad_enabled))
    hooked(trainer, "_save_checkpoint", checkpoint_hook)
    hooked(trainer, "save_model", checkpoint_hook)
