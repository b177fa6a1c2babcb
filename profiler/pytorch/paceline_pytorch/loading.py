# SPDX-License-Identifier: Apache-2.0
"""DataLoader: the time in which the script waits for a batch, and what the workers do for it."""
from . import ranges
from .description import mark_run_without_optimizer
from .iterations import iterations
from .training import hooked, is_evaluating

phases = ranges.phases


def _count_batches(iterator):
    """The number of batches in an epoch, or None."""
    try:
        if type(iterator._dataset).__getitem__ and not hasattr(type(iterator._dataset), "__iter__"):
            return len(iterator._index_sampler)
    except (AttributeError, TypeError, NotImplementedError):
        pass
    return None


def _make_next(is_grad_enabled):
    begin_batch, end_inside, found_batch = phases.begin_batch, phases.end_inside, phases.found_batch

    def begin_other_batch(iterator):
        """The first batch of a training, a batch of an evaluation or of unknown number, or the call after the last batch. An
        iterator that has given a batch for training goes on with it, also if the script evaluates another module between
        two batches. Returns True if only the loader knows whether there is a batch."""
        batches = _count_batches(iterator)
        for_training = is_grad_enabled() and (iterator._paceline_trains or not is_evaluating())
        if for_training and batches is None:
            iterator._paceline_trains = True
            phases.seek_batch()
            return True
        for_training = for_training and iterator._num_yielded < batches
        if for_training:
            iterator._paceline_batches = batches
        else:
            end_training()
        begin_batch(for_training)
        return False

    def end_training():
        if not iterations.optimizers:
            mark_run_without_optimizer()

    def seek(original, iterator):
        try:
            batch = original(iterator)
        except BaseException as error:
            end_inside()
            if isinstance(error, StopIteration):
                end_training()
                phases.begin_interlude()
            raise
        found_batch()
        return batch

    def make(original):
        def __next__(self):
            if self._num_yielded < self._paceline_batches:
                begin_batch(is_grad_enabled())
            elif begin_other_batch(self):
                return seek(original, self)
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
    iterator._paceline_batches, iterator._paceline_trains = 0, False
    hooked(iterator, "__next__", _make_next(torch.is_grad_enabled))
    hooked(fetch._BaseDatasetFetcher, "__init__", _make_fetcher_init)
    # The fetchers' fetch() is hooked without a function of Python around it, which costs a microsecond.
    for fetcher in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        fetcher.fetch = ranges.hook_of_method("around_fetch", fetcher.fetch)
