"""DataLoader: the time in which the script waits for a batch, and what the workers do for it."""
from _thread import get_ident

from . import ranges
from .iterations import iterations
from .training import hooked, inside

kinds, pop, attach = ranges.kinds, ranges.pop, ranges.attach


def _batches_of(iterator):
    """The number of batches in an epoch, if the loader knows it."""
    known = iterator.__dict__.get("_paceline_batches")
    if known is None:
        known = float("inf")
        try:
            if type(iterator._dataset).__getitem__ and not hasattr(type(iterator._dataset), "__iter__"):
                known = len(iterator._index_sampler)
        except (AttributeError, TypeError, NotImplementedError):
            pass
        iterator._paceline_batches = known
    return known


def _make_next(is_grad_enabled):
    def make(original):
        def __next__(self):
            if not kinds.ready and not attach():
                return original(self)
            if iterations.evaluating or not is_grad_enabled() or self._num_yielded >= _batches_of(self):
                iterations.interlude()
            else:
                iterations.work(new_batch=True)
            thread = get_ident()
            nested = thread in inside  # a data set that reads from another loader
            counts = iterations.enter(thread)
            kinds.preprocess()
            inside.add(thread)  # transforms are modules too
            try:
                return original(self)
            finally:
                if not nested:
                    inside.discard(thread)
                pop()
                iterations.depth -= counts

        return __next__

    return make


def _make_fetcher_init(original):
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        collate = self.collate_fn
        self._paceline_fetching = False

        def timed_collate(*args, **kwargs):
            if not self._paceline_fetching:
                return collate(*args, **kwargs)
            self._paceline_fetching = False
            pop()
            kinds.collate()
            try:
                return collate(*args, **kwargs)
            finally:
                pop()

        if collate is not None:
            self.collate_fn = timed_collate

    return __init__


def _make_fetch(original):
    def fetch(self, *args, **kwargs):
        if not kinds.ready and not attach():
            return original(self, *args, **kwargs)
        thread = get_ident()
        nested = thread in inside
        inside.add(thread)
        self._paceline_fetching = True
        kinds.fetch()
        try:
            return original(self, *args, **kwargs)
        finally:
            if self._paceline_fetching:
                self._paceline_fetching = False
                pop()
            if not nested:
                inside.discard(thread)

    return fetch


def install(torch):
    import torch.utils.data.dataloader
    from torch.utils.data._utils import fetch

    hooked(torch.utils.data.dataloader._BaseDataLoaderIter, "__next__", _make_next(torch.is_grad_enabled))
    hooked(fetch._BaseDatasetFetcher, "__init__", _make_fetcher_init)
    for fetcher in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        hooked(fetcher, "fetch", _make_fetch)
