# SPDX-License-Identifier: Apache-2.0
"""DataLoader: the time in which the script waits for a batch, and what the workers do for it."""
import sys

from . import ranges
from .training import hooked, is_evaluating

phases = ranges.phases


def _count_batches(iterator):
    """The number of batches in an epoch. A loader that does not know it never ends an iteration early."""
    try:
        if type(iterator._dataset).__getitem__ and not hasattr(type(iterator._dataset), "__iter__"):
            return len(iterator._index_sampler)
    except (AttributeError, TypeError, NotImplementedError):
        pass
    return sys.maxsize


def _make_next(is_grad_enabled):
    begin_batch, end_inside = phases.begin_batch, phases.end_inside

    def begin_other_batch(iterator):
        """The first batch of a training, a batch of an evaluation, or the call after the last batch. An iterator that has
        given a batch for training goes on with it, also if the script evaluates another module between two batches."""
        batches = _count_batches(iterator)
        for_training = iterator._num_yielded < batches and is_grad_enabled() and not is_evaluating()
        if for_training:
            iterator._paceline_batches = batches
        begin_batch(for_training)

    def make(original):
        def __next__(self):
            if self._num_yielded < self._paceline_batches:
                begin_batch(is_grad_enabled())
            else:
                begin_other_batch(self)
            try:
                return original(self)
            finally:
                end_inside()

        return __next__

    return make


def _make_fetcher_init(original):
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        if self.collate_fn is not None:
            self.collate_fn = ranges.hook("before_collate", self.collate_fn)

    return __init__


def install(torch):
    import torch.utils.data.dataloader
    from torch.utils.data._utils import fetch

    iterator = torch.utils.data.dataloader._BaseDataLoaderIter
    iterator._paceline_batches = 0
    hooked(iterator, "__next__", _make_next(torch.is_grad_enabled))
    hooked(fetch._BaseDatasetFetcher, "__init__", _make_fetcher_init)
    # The fetchers' fetch() is hooked without a function of Python around it, which costs a microsecond.
    for fetcher in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        fetcher.fetch = ranges.hook_of_method("around_fetch", fetcher.fetch)
