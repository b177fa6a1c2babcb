# SPDX-License-Identifier: Apache-2.0
# usage: processes.py LIBRARY fork|spawn: a parent and two workers that make NVTX ranges. It knows nothing of Paceline.
import ctypes
import multiprocessing
import sys


def work(library, count):
    ctypes.CDLL(library).make_ranges(b"worker", count)


if __name__ == "__main__":
    ctypes.CDLL(sys.argv[1]).make_ranges(b"parent", 11)
    context = multiprocessing.get_context(sys.argv[2])
    workers = [context.Process(target=work, args=(sys.argv[1], 5)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    ctypes.CDLL(sys.argv[1]).make_ranges(b"parent", 11)
    sys.exit(max(worker.exitcode for worker in workers))
