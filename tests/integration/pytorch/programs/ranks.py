# SPDX-License-Identifier: Apache-2.0
"""How ranks, loaders and training threads are started."""
import os
import queue
import socket
import threading

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .common import EPOCHS, ddp, loader_of, loss_of, network, program, say, sgd


@program(launch="ranks")
def workers_fork():
    ddp(workers=2, method="fork")


@program(launch="ranks")
def workers_fork_persistent():
    ddp(workers=2, method="fork", persistent=True)


@program(launch="ranks")
def workers_spawn():
    ddp(workers=1, method="spawn")


@program(launch="ranks")
def workers_spawn_persistent():
    ddp(workers=1, method="spawn", persistent=True)


@program(launch="ranks")
def workers_forkserver():
    ddp(workers=1, method="forkserver", persistent=True)


@program(launch="ranks")
def loading_thread():
    """A thread of the script fetches batches ahead of the main thread."""
    dist.init_process_group("gloo")
    model = DistributedDataParallel(network())
    optimizer, steps = sgd(model), 0
    for _ in range(EPOCHS):
        fetched = queue.Queue(4)

        def fetch(fetched=fetched):
            for batch in loader_of():
                fetched.put(batch)
            fetched.put(None)

        thread = threading.Thread(target=fetch)
        thread.start()
        while (batch := fetched.get()) is not None:
            loss = loss_of(model, *batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        thread.join()
    say(steps, loss, model.parameters())
    dist.destroy_process_group()


@program(launch="ranks")
def training_thread():
    """The main thread only waits."""
    thread = threading.Thread(target=ddp)
    thread.start()
    thread.join()


def of_spawn(rank, ranks, port):
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    if os.environ.get("CASE_COUNTS"):
        from . import counting
        counting.count_in(os.environ["CASE_COUNTS"])
    ddp()


def spawn(method):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = int(os.environ["RANKS"])
    torch.multiprocessing.start_processes(of_spawn, (ranks, port), nprocs=ranks, start_method=method)


@program(launch="self")
def ranks_by_spawn():
    spawn("spawn")


@program(launch="self")
def ranks_by_fork():
    spawn("fork")
