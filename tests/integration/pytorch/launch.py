#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: launch.py RANKS SCRIPT [ARGUMENT…]

Starts a script once for each rank, as torchrun does. Debian 12's torchrun does not work with its Python. When a rank
fails, the others are ended. SIGABRT makes every rank print where it is.
"""
import os
import random
import signal
import socket
import subprocess
import sys
import time


def free_port():
    """A port below the range from which the system takes the ports of outgoing connections.

    A port of that range may be taken by another program before rank 0 listens on it, or by the rank that connects to it:
    TCP lets a connection from a port to itself succeed, and then all ranks wait for ever.
    """
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def start(rank, ranks, port):
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                 "OMP_NUM_THREADS": 1, "PYTHONFAULTHANDLER": 1}
    environment = dict(os.environ, **{name: str(value) for name, value in variables.items()})
    return subprocess.Popen([sys.executable, *sys.argv[2:]], env=environment)


ranks = int(sys.argv[1])
port = free_port()
started = [start(rank, ranks, port) for rank in range(ranks)]
signal.signal(signal.SIGABRT, lambda *_: [process.send_signal(signal.SIGABRT) for process in started])
while None in [process.poll() for process in started] and not any(process.returncode for process in started):
    time.sleep(0.01)
for rank, process in enumerate(started):
    if process.returncode:
        print(f"launch.py: rank {rank} ended with status {process.returncode}", file=sys.stderr)
    elif process.returncode is None:
        process.terminate()
sys.exit(max(abs(process.wait()) for process in started))
