# SPDX-License-Identifier: Apache-2.0
"""Lightning: each training batch is one iteration of the trace, and a validation is the phase evaluate.

    lightning.Trainer(callbacks=[PacelineSteps()])
"""
import lightning
import paceline


class PacelineSteps(lightning.Callback):
    step, validation = paceline.step(), paceline.phase("validation")

    def on_train_batch_start(self, *_):
        self.step.__enter__()

    def on_train_batch_end(self, *_):
        self.step.__exit__(None, None, None)

    def on_validation_start(self, *_):
        self.validation.__enter__()

    def on_validation_end(self, *_):
        self.validation.__exit__(None, None, None)
