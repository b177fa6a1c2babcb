# SPDX-License-Identifier: Apache-2.0
# usage: loader.py LIBRARY fork|spawn|forkserver early|late|never
# A trainer with two workers, as PyTorch's DataLoader has them: the workers start before the trainer's first range and
# make more ranges than it does. The trainer makes its ranges before the workers' (early), after them (late), or none
# (never). It knows nothing of Paceline.
import ctypes
import multiprocessing
import sys


def work(library, order, may_begin):
    if order == "early":
        may_begin.wait()
    ctypes.CDLL(library).make_ranges(b"fetch", 40)


def train(library):
    ctypes.CDLL(library).make_ranges(b"iteration", 6)


if __name__ == "__main__":
    library, method, order = sys.argv[1:]
    context = multiprocessing.get_context(method)
    may_begin = context.Event()
    workers = [context.Process(target=work, args=(library, order, may_begin)) for _ in range(2)]
    for worker in workers:
        worker.start()
    if order == "early":
        train(library)
        may_begin.set()
    for worker in workers:
        worker.join()
    if order == "late":
        train(library)
    sys.exit(max(worker.exitcode for worker in workers))
