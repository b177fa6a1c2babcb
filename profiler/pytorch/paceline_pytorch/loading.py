"""DataLoader: the time in which the script waits for a batch, and what the workers do for it."""
import sys

from . import ranges
from .training import hooked

phases = ranges.phases


def _count_batches(iterator):
    """Sets the number of batches in an epoch. A loader that does not know it never ends an iteration early."""
    known = sys.maxsize
    try:
        if type(iterator._dataset).__getitem__ and not hasattr(type(iterator._dataset), "__iter__"):
            known = len(iterator._index_sampler)
    except (AttributeError, TypeError, NotImplementedError):
        pass
    iterator._paceline_batches = known
    return known


def _make_next(is_grad_enabled):
    begin_batch, end_inside = phases.begin_batch, phases.end_inside

    def make(original):
        def __next__(self):
            has_more = self._num_yielded < self._paceline_batches or self._num_yielded < _count_batches(self)
            begin_batch(has_more and is_grad_enabled())
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
