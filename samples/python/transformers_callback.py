# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer: each step of the optimizer, with all batches that it accumulates, is one iteration of the trace.

    transformers.Trainer(…, callbacks=[PacelineSteps()])
"""
import paceline
import transformers


class PacelineSteps(transformers.TrainerCallback):
    step = paceline.step()

    def on_step_begin(self, *_, **__):
        self.step.__enter__()

    def on_step_end(self, *_, **__):
        self.step.__exit__(None, None, None)
