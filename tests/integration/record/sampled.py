# SPDX-License-Identifier: Apache-2.0
# usage: sampled.py places|churn|children|hangs|reads SECONDS [LIBRARY FIFO]
# Python code whose stacks are sampled. It knows nothing of Paceline: it calls CUDA's function that starts a profiler,
# and where that is not loaded nothing is recorded.
import _thread
import ctypes
import os
import subprocess
import sys
import threading
import time

start = getattr(ctypes.CDLL(None), "cudaProfilerStart", lambda: 0)


def descend(levels, function):
    if levels > 0:
        return descend(levels - 1, function)
    return function()


def sleep_here():
    time.sleep(seconds)


def compute_here():
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(
            range(100)
        )


def generate():
    for _ in range(2):
        time.sleep(seconds / 2)
        yield


class Loader:
    def __getitem__(self, index):
        return os.read(self.pipe, 1)

    def wait(self):
        with subprocess.Popen(["sleep", str(seconds)], stdout=subprocess.PIPE) as writer:
            self.pipe = writer.stdout.fileno()
            self[0]


held = []


def hold_the_lock():
    clock = time.CLOCK_THREAD_CPUTIME_ID  # so that a busy machine leaves it as much time
    end = time.clock_gettime(clock) + seconds / 2
    while time.clock_gettime(clock) < end:
        sum(range(1_000_000))
    held.append(seconds)


def ask_for_the_lock():
    _thread.start_new_thread(hold_the_lock, ())  # which runs no other function, not even while it begins or ends
    while not held:
        time.sleep(0.0001)


def join_it():
    holder = threading.Thread(target=hold_the_lock)
    holder.start()
    holder.join()


def places():
    descend(20, sleep_here)
    descend(3, compute_here)
    list(generate())
    Loader().wait()
    ask_for_the_lock()
    join_it()


# Code objects that come and go, recursion, generators, exceptions and threads.
def churn():
    end = time.monotonic() + seconds

    def work():
        number = 0
        while time.monotonic() < end:
            number += 1
            names = {}
            exec(f"def made_{number % 7}(n):\n\n  return n and made_{number % 7}(n - 1)\nmade_{number % 7}({number % 300})", names)
            list(made for made in range(50))
            try:
                descend(number % 200, lambda: 1 / 0)
            except ZeroDivisionError:
                pass
            sys.setrecursionlimit(1000 + number % 10)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()


# A child that forks and goes on, one that ends at once, and one that becomes another program.
def children():
    for number in range(20):
        child = os.fork()
        if child == 0:
            if number % 3 == 0:
                os._exit(0)
            if number % 3 == 1:
                os.execv(sys.executable, [sys.executable, "-c", "pass"])
            start()
            descend(5, lambda: time.sleep(seconds / 20))
            os._exit(0)
        descend(5, lambda: time.sleep(seconds / 20))
        if os.waitpid(child, 0)[1] != 0:
            sys.exit(3)


# The last rank waits for an item that never comes, the others for that rank.
def hangs():
    from mpi4py import MPI

    class Images:
        def __getitem__(self, index):
            return os.read(os.pipe()[0], 1)

    world = MPI.COMM_WORLD
    world.allreduce(1)
    if world.rank == world.size - 1:
        Images()[0]
    world.allreduce(1)


# Forty iterations, of which five read from a FIFO that is fed slowly.
def reads():
    library, fifo = ctypes.CDLL(sys.argv[3]), sys.argv[4]
    os.mkfifo(fifo)
    slow = os.open(fifo, os.O_RDWR)

    def read_slowly():
        threading.Timer(seconds, os.write, [slow, b"x"]).start()
        os.read(slow, 1)

    for step in range(40):
        library.begin_range(b"iteration")
        time.sleep(0.04)  # so long that a busy machine makes none slow
        if step % 8 == 7:
            read_slowly()
        library.end_range()


start()
seconds = float(sys.argv[2])
globals()[sys.argv[1]]()
