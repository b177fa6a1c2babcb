# SPDX-License-Identifier: Apache-2.0
"""Records the phases of PyTorch programs that were not changed. `paceline record --pytorch` loads it (sitecustomize.py).

    imports      calls the others when torch is imported, and does nothing in programs that never import it
    ranges       the recorder's functions for ranges, as built-in functions and through ctypes
    iterations   decides which steps of optimizers end an iteration
    training     forward, backward, optimizer, evaluation, checkpoints, copies to the device
    loading      DataLoader and its workers
    collecting   the garbage collector
    collectives  torch.distributed on backends that the recorder does not see otherwise
    description  the mark `run`, which describes the job
    script       what a script marks itself (`import paceline`)

Each hook calls the original with the same arguments and returns its result. It adds ranges around the call and changes
nothing else, so that a run computes the same numbers with it and without it.
"""
